#include "mount/vfs/drafts.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct node_is a = {.key = "a", .version = "", .inode = 7};

static int begin(void **state)
{
    struct nodes *n = malloc(sizeof *n);
    struct drafts *d = malloc(sizeof *d);
    nodes_init(n, "", ledger_open(-1));
    drafts_init(d, n);
    *state = d;
    return 0;
}

static int end(void **state)
{
    struct drafts *d = *state;
    struct nodes *n = d->nodes;
    drafts_done(d);
    assert_int_equal(n->count, 0);
    ledger_close(n->ledger);
    nodes_done(n);
    free(n);
    free(d);
    return 0;
}

static void a_new_name_has_one_draft(void **state)
{
    struct drafts *d = *state;
    struct node *node, *other;
    atomic_bool unlinked = false;
    assert_null(drafts_find(d, "a"));
    assert_int_equal(drafts_create(d, &a, &unlinked, &node), 0);
    assert_int_equal(drafts_create(d, &a, &unlinked, &other), -EEXIST);
    assert_int_equal(drafts_want(d, &a, "\"1\""), -EBUSY);
    assert_int_equal(drafts_idle(d, "a"), -EBUSY);
    assert_int_equal(drafts_idle(d, "b"), 0);
    assert_ptr_equal(drafts_find(d, "a"), node);
    assert_int_equal(drafts_look(d, node), 0);
    drafts_closing(d, node);
    drafts_end(d, node);
    drafts_end(d, node);
    assert_int_equal(drafts_look(d, node), -ESTALE);
    assert_int_equal(drafts_idle(d, "a"), 0);
    nodes_forget(d->nodes, node, 2);
}

static void a_wanted_draft_is_opened_once(void **state)
{
    struct drafts *d = *state;
    char *etag = NULL;
    atomic_bool unlinked = false;
    assert_int_equal(drafts_want(d, &a, "\"1\""), 0);
    struct node *node = drafts_find(d, "a");
    assert_int_equal(drafts_want(d, &a, "\"2\""), 0);
    assert_int_equal(drafts_open(d, node, &unlinked, &etag), 0);
    assert_string_equal(etag, "\"2\"");
    assert_int_equal(drafts_open(d, node, &unlinked, &etag), -EBUSY);
    drafts_end(d, node);
    assert_int_equal(drafts_open(d, node, &unlinked, &etag), -ESTALE);
    free(etag);
    nodes_forget(d->nodes, node, 1);
}

static void an_unlinked_draft_is_told(void **state)
{
    struct drafts *d = *state;
    struct node *node;
    atomic_bool unlinked = false;
    assert_null(drafts_unlink_begin(d, "a"));
    assert_int_equal(drafts_create(d, &a, &unlinked, &node), 0);
    assert_ptr_equal(drafts_unlink_begin(d, "a"), node);
    assert_false(unlinked);
    drafts_unlink_end(d, node, true);
    assert_true(unlinked);
    assert_null(drafts_find(d, "a"));
    nodes_forget(d->nodes, node, 1);
}

static void a_failed_unlink_changes_nothing(void **state)
{
    struct drafts *d = *state;
    struct node *node;
    atomic_bool unlinked = false;
    assert_int_equal(drafts_create(d, &a, &unlinked, &node), 0);
    assert_ptr_equal(drafts_unlink_begin(d, "a"), node);
    drafts_unlink_end(d, node, false);
    assert_false(unlinked);
    assert_int_equal(drafts_look(d, node), 0);
    drafts_end(d, node);
    nodes_forget(d->nodes, node, 1);
}

static void a_draft_may_end_under_an_unlink(void **state)
{
    struct drafts *d = *state;
    struct node *node;
    atomic_bool unlinked = false;
    assert_int_equal(drafts_create(d, &a, &unlinked, &node), 0);
    assert_ptr_equal(drafts_unlink_begin(d, "a"), node);
    drafts_end(d, node);
    drafts_unlink_end(d, node, true);
    assert_false(unlinked); /* the handle may have gone */
    nodes_forget(d->nodes, node, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_new_name_has_one_draft, begin, end),
        cmocka_unit_test_setup_teardown(a_wanted_draft_is_opened_once, begin, end),
        cmocka_unit_test_setup_teardown(an_unlinked_draft_is_told, begin, end),
        cmocka_unit_test_setup_teardown(a_failed_unlink_changes_nothing, begin, end),
        cmocka_unit_test_setup_teardown(a_draft_may_end_under_an_unlink, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
