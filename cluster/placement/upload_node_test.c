#include "cluster/placement/upload_node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "hrw/hrw.h"

static struct node nodes[] = {
    {.id = "p1", .role = NODE_PROXY},
    {.id = "t1", .role = NODE_TARGET},
    {.id = "t2", .role = NODE_TARGET},
};
static const struct smap map = {.count = 3, .nodes = nodes};

static int setup(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < map.count; i++) {
        nodes[i].seed = hrw_seed(nodes[i].id);
        nodes[i].state = NODE_ACTIVE;
        nodes[i].absent_since = 0;
    }
    return 0;
}

static int find(const char *node, const struct node **out, struct error *err)
{
    struct upload_id id = {.time_ms = 1, .seed = hrw_seed(node)};
    char text[UPLOAD_ID_CHARS + 1];
    return upload_node_find(&map, upload_id_text(&id, text), out, err);
}

static void the_seed_says_which_target(void **unused)
{
    (void)unused;
    const struct node *n = NULL;
    struct error err = ERROR_INIT;
    assert_int_equal(find("t1", &n, &err), 0);
    assert_ptr_equal(n, &nodes[1]);
    assert_int_equal(find("t2", &n, &err), 0);
    assert_ptr_equal(n, &nodes[2]);
    assert_int_equal(find("t3", &n, &err), E_NOT_FOUND);
    assert_int_equal(find("p1", &n, &err), E_NOT_FOUND);
    assert_int_equal(upload_node_find(&map, "x", &n, &err), E_INVALID);
}

static void a_target_that_does_not_answer_is_named(void **unused)
{
    (void)unused;
    static const struct {
        enum node_state state;
        uint64_t absent_since;
        int code;
    } rows[] = {
        {NODE_ACTIVE, 0, 0},
        {NODE_ACTIVE, 7, 0}, /* without some of its mountpaths */
        {NODE_UNREACHABLE, 0, E_NODE_UNREACHABLE},
        {NODE_MAINTENANCE, 0, 0}, /* what it has is being moved off */
        {NODE_MAINTENANCE, 7, E_NODE_UNREACHABLE},
        {NODE_DECOMMISSIONING, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct node *n = NULL;
        struct error err = ERROR_INIT;
        nodes[1].state = rows[i].state;
        nodes[1].absent_since = rows[i].absent_since;
        assert_int_equal(find("t1", &n, &err), rows[i].code);
        if (rows[i].code != 0)
            assert_non_null(strstr(err.message, "'t1'"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_seed_says_which_target, setup),
        cmocka_unit_test_setup(a_target_that_does_not_answer_is_named, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
