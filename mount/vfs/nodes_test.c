#include "mount/vfs/nodes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void a_version_is_a_node(void **state)
{
    (void)state;
    struct nodes *n = malloc(sizeof *n);
    nodes_init(n, "p/");
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
    assert_ptr_equal(nodes_of(n, nodes_id(n, a)), a);
    nodes_forget(n, a, 1);
    assert_int_equal(n->count, 3);
    nodes_use(n, a); /* a handle */
    nodes_forget(n, a, 1);
    nodes_forget(n, a, 1);
    assert_int_equal(n->count, 2);
    nodes_forget(n, b, 1);
    nodes_done(n); /* with one that is left */
    free(n);
}

static void the_root_stays(void **state)
{
    (void)state;
    struct nodes *n = malloc(sizeof *n);
    nodes_init(n, "p/");
    assert_int_equal(nodes_id(n, &n->root), 1);
    assert_ptr_equal(nodes_of(n, 1), &n->root);
    nodes_forget(n, &n->root, 1000);
    assert_string_equal(nodes_of(n, 1)->key, "p/");
    nodes_done(n);
    free(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_version_is_a_node),
        cmocka_unit_test(the_root_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
