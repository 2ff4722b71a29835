#include "mount/vfs/room.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* What the cluster answers, and how often it was asked. */
struct cluster {
    struct room room;
    int rc;
    uint64_t bytes;
    unsigned asked;
    int rc_beside; /* of a call while the cluster is asked */
    struct tree_room beside;
};

static int ask(void *context, struct tree_room *room)
{
    struct cluster *c = context;
    c->asked++;
    c->rc_beside = room_get(&c->room, &c->beside);
    *room = (struct tree_room){.total_bytes = c->bytes};
    return c->rc;
}

static int setup(void **state)
{
    static struct cluster c;
    c = (struct cluster){.bytes = 100};
    room_init(&c.room, ask, &c);
    *state = &c;
    return 0;
}

static int teardown(void **state)
{
    struct cluster *c = *state;
    room_done(&c->room);
    return 0;
}

static void check(struct cluster *c, int rc, uint64_t bytes, unsigned asked)
{
    struct tree_room room;
    assert_int_equal(room_get(&c->room, &room), rc);
    assert_int_equal(room.total_bytes, bytes);
    assert_int_equal(c->asked, asked);
}

static void time_passes(struct cluster *c)
{
    c->room.next_ms = 0;
}

static void an_answer_is_kept(void **state)
{
    struct cluster *c = *state;
    check(c, 0, 100, 1);
    c->bytes = 200;
    check(c, 0, 100, 1);
    time_passes(c);
    check(c, 0, 200, 2);
}

static void others_do_not_wait(void **state)
{
    struct cluster *c = *state;
    check(c, 0, 100, 1);
    assert_int_equal(c->rc_beside, 0);
    assert_int_equal(c->beside.total_bytes, 0);
    time_passes(c);
    c->bytes = 200;
    check(c, 0, 200, 2);
    assert_int_equal(c->beside.total_bytes, 100);
}

static void a_failure_is_remembered(void **state)
{
    struct cluster *c = *state;
    c->rc = -EIO;
    check(c, -EIO, 0, 1);
    check(c, -EIO, 0, 1);
    time_passes(c);
    c->rc = 0;
    check(c, 0, 100, 2);
}

static void a_failure_leaves_the_last_room(void **state)
{
    struct cluster *c = *state;
    check(c, 0, 100, 1);
    c->rc = -EIO;
    time_passes(c);
    check(c, 0, 100, 2);
    check(c, 0, 100, 2);
}

static void an_interrupted_call_is_no_failure(void **state)
{
    struct cluster *c = *state;
    c->rc = -EINTR;
    check(c, -EINTR, 0, 1);
    c->rc = 0;
    check(c, 0, 100, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_answer_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(others_do_not_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(a_failure_is_remembered, setup, teardown),
        cmocka_unit_test_setup_teardown(a_failure_leaves_the_last_room, setup, teardown),
        cmocka_unit_test_setup_teardown(an_interrupted_call_is_no_failure, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
