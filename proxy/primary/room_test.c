/* Whether others have room for what a leaving target has. */
#include "proxy/primary/room.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { UNKNOWN = 0xffff };

/* t1, t2 and t3, who have the weights 1, 1 and 2, and a proxy. */
static struct node nodes[] = {
    {.id = "p1", .role = NODE_PROXY, .state = NODE_ACTIVE, .weight = 100},
    {.id = "t1", .role = NODE_TARGET, .state = NODE_ACTIVE, .weight = 1024},
    {.id = "t2", .role = NODE_TARGET, .state = NODE_ACTIVE, .weight = 1024},
    {.id = "t3", .role = NODE_TARGET, .state = NODE_ACTIVE, .weight = 2048},
};
static const struct smap map = {.nodes = nodes, .count = 4};

static bool room_of(void *ctx, const char *target, uint64_t *bytes)
{
    const uint64_t *rooms = ctx;
    *bytes = rooms[target[1] - '1'];
    return *bytes != UNKNOWN;
}

static int check(const char *leaving, uint64_t bytes, uint64_t r1, uint64_t r2, uint64_t r3,
                 struct error *err)
{
    uint64_t rooms[] = {r1, r2, r3};
    *err = ERROR_INIT;
    return room_check(&map, leaving, bytes, room_of, rooms, err);
}

static void each_gets_the_share_of_its_weight(void **unused)
{
    (void)unused;
    struct error err;
    assert_int_equal(check("t1", 900, 0, 300, 600, &err), 0);
    assert_int_equal(check("t1", 900, 0, 299, 9000, &err), E_NO_SPACE);
    assert_non_null(strstr(err.message, "'t2'"));
    assert_int_equal(check("t1", 900, 0, 9000, 599, &err), E_NO_SPACE);
    assert_non_null(strstr(err.message, "'t3'"));
    assert_int_equal(check("t3", 900, 450, 450, 0, &err), 0);
    assert_int_equal(check("t3", 0, 0, 0, 0, &err), 0);
}

static void who_has_too_little_by_most_is_named(void **unused)
{
    (void)unused;
    struct error err;
    assert_int_equal(check("t1", 900, 0, 200, 100, &err), E_NO_SPACE);
    assert_non_null(strstr(err.message, "'t3'"));
}

static void what_is_not_known_is_enough(void **unused)
{
    (void)unused;
    struct error err;
    assert_int_equal(check("t1", 900, 0, UNKNOWN, UNKNOWN, &err), 0);
    assert_int_equal(check("t1", 900, 0, UNKNOWN, 10, &err), E_NO_SPACE);
}

/* One that does not answer owns its share all the same; one in maintenance gets nothing. */
static void owners_alone_get_something(void **unused)
{
    (void)unused;
    struct error err;
    nodes[2].state = NODE_MAINTENANCE;
    assert_int_equal(check("t1", 900, 0, 0, 900, &err), 0);
    nodes[2].state = NODE_UNREACHABLE;
    assert_int_equal(check("t1", 900, 0, UNKNOWN, 600, &err), 0);
    nodes[2].state = NODE_ACTIVE;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_gets_the_share_of_its_weight),
        cmocka_unit_test(who_has_too_little_by_most_is_named),
        cmocka_unit_test(what_is_not_known_is_enough),
        cmocka_unit_test(owners_alone_get_something),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
