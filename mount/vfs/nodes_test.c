#include "mount/vfs/nodes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "mount/data/entity.h"

static void a_version_is_a_node(void **state)
{
    (void)state;
    struct nodes *n = malloc(sizeof *n);
    struct ledger *l = ledger_open(-1);
    nodes_init(n, "p/", l);
    const struct node_is one = {.key = "p/a", .version = "1", .inode = 7, .size = 3};
    const struct node_is two = {.key = "p/a", .version = "2", .inode = 7, .size = 3};
    const struct node_is folder = {.key = "p/a", .version = "", .is_directory = true};
    struct node *a = nodes_take(n, &one);
    assert_ptr_equal(nodes_take(n, &one), a);
    struct node *b = nodes_take(n, &two);
    assert_ptr_not_equal(a, b);
    struct node *c = nodes_take(n, &folder);
    assert_true(c != a && c != b);
    assert_int_equal(n->count, 3);
    assert_ptr_equal(nodes_of(n, nodes_id(a)), a);
    nodes_forget(n, a, 1);
    assert_int_equal(n->count, 3);
    nodes_use(n, a); /* a handle */
    nodes_forget(n, a, 1);
    nodes_forget(n, a, 1);
    assert_int_equal(n->count, 2);
    nodes_forget(n, b, 1);
    nodes_done(n); /* with one that is left */
    free(n);
    ledger_close(l);
}

/* A file that the kernel reads itself when the mount ends. */
static void what_is_held_ends_with_the_nodes(void **state)
{
    (void)state;
    struct nodes *n = malloc(sizeof *n);
    struct ledger *l = ledger_open(-1);
    struct entity *e = entity_new("a", "\"1\"", "", 3);
    nodes_init(n, "", l);
    const struct node_is is = {.key = "a", .version = "1", .size = 3};
    nodes_take(n, &is)->held = entity_ref(e);
    nodes_done(n);
    assert_int_equal(e->refs, 1);
    entity_unref(e);
    free(n);
    ledger_close(l);
}

static void a_draft_is_no_version(void **state)
{
    (void)state;
    struct nodes *n = malloc(sizeof *n);
    struct ledger *l = ledger_open(-1);
    nodes_init(n, "", l);
    const struct node_is is = {.key = "a", .version = "", .inode = 7};
    struct node *draft = nodes_draft(n, &is);
    struct node *version = nodes_take(n, &is);
    assert_ptr_not_equal(draft, version);
    assert_ptr_not_equal(nodes_draft(n, &is), draft);
    assert_true(draft->is_draft && !version->is_draft);
    nodes_forget(n, draft, 1);
    nodes_forget(n, version, 1);
    assert_int_equal(n->count, 1);
    nodes_done(n);
    free(n);
    ledger_close(l);
}

static void the_root_stays(void **state)
{
    (void)state;
    struct nodes *n = malloc(sizeof *n);
    struct ledger *l = ledger_open(-1);
    nodes_init(n, "p/", l);
    assert_int_equal(nodes_id(&n->root), 1);
    assert_ptr_equal(nodes_of(n, 1), &n->root);
    nodes_forget(n, &n->root, 1000);
    assert_string_equal(nodes_of(n, 1)->key, "p/");
    nodes_done(n);
    free(n);
    ledger_close(l);
}

static void nodes_outlive_the_process(void **state)
{
    (void)state;
    struct nodes *n = malloc(sizeof *n);
    struct ledger *l = ledger_open(-1);
    nodes_init(n, "", l);
    const struct node_is is = {.key = "a", .version = "1", .inode = 7, .size = 3};
    const struct node_is written = {.key = "b", .version = ""};
    uint64_t a = nodes_id(nodes_take(n, &is)), b = nodes_id(nodes_draft(n, &written));
    nodes_use(n, nodes_of(n, a));
    nodes_done(n); /* as a crash: the ledger has all */
    nodes_init(n, "", l);
    assert_int_equal(n->count, 2);
    assert_string_equal(nodes_of(n, a)->key, "a");
    assert_string_equal(nodes_of(n, a)->version, "1");
    assert_int_equal(nodes_of(n, a)->size, 3);
    assert_true(nodes_of(n, b)->is_draft);
    assert_ptr_equal(nodes_take(n, &is), nodes_of(n, a));
    nodes_forget(n, nodes_of(n, a), 3);
    nodes_forget(n, nodes_of(n, b), 1);
    assert_int_equal(n->count, 0);
    assert_ptr_equal(nodes_of(n, a), &n->lost);
    nodes_forget(n, nodes_of(n, a), 1);
    nodes_done(n);
    nodes_init(n, "", l);
    assert_int_equal(n->count, 0);
    nodes_done(n);
    free(n);
    ledger_close(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_version_is_a_node),
        cmocka_unit_test(what_is_held_ends_with_the_nodes),
        cmocka_unit_test(a_draft_is_no_version),
        cmocka_unit_test(the_root_stays),
        cmocka_unit_test(nodes_outlive_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
