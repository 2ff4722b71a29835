#include "mount/plogs/nodes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct plog_node_is one = {.key = "a", .version = "1"};

static void test_same_and_other(void **state)
{
    struct plog_nodes n;
    (void)state;
    plog_nodes_init(&n, "");
    struct plog_node *a = plog_nodes_take(&n, &one);
    assert_ptr_equal(plog_nodes_take(&n, &one), a);
    assert_int_equal(a->uses, 2);
    assert_ptr_equal(plog_nodes_of(&n, plog_nodes_id(&n, a)), a);
    assert_ptr_equal(plog_nodes_of(&n, 1), &n.root);
    struct plog_node_is other = one;
    other.version = "2";
    struct plog_node *b = plog_nodes_take(&n, &other);
    assert_ptr_not_equal(a, b);
    assert_true(a->is_gone && !b->is_gone);
    plog_nodes_forget(&n, a, 2);
    assert_ptr_equal(plog_nodes_find(&n, "a"), b);
    plog_nodes_forget(&n, b, 2);
    assert_null(plog_nodes_find(&n, "a"));
    plog_nodes_done(&n);
}

static void test_rename(void **state)
{
    struct plog_nodes n;
    struct plog_node_is other = one;
    (void)state;
    plog_nodes_init(&n, "");
    other.key = "b";
    struct plog_node *a = plog_nodes_take(&n, &one), *b = plog_nodes_take(&n, &other);
    plog_nodes_rename(&n, a, "b");
    assert_true(b->is_gone && !a->is_gone);
    assert_string_equal(a->key, "b");
    assert_null(plog_nodes_find(&n, "a"));
    assert_ptr_equal(plog_nodes_find(&n, "b"), a);
    plog_nodes_remove(&n, a);
    assert_null(plog_nodes_find(&n, "b"));
    plog_nodes_rename(&n, a, "c"); /* it has no name any more */
    assert_null(plog_nodes_find(&n, "c"));
    plog_nodes_done(&n); /* frees what the kernel has not given back */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_and_other),
                                       cmocka_unit_test(test_rename)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
