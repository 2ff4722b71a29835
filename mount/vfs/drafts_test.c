#include "mount/vfs/drafts.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/mem.h"

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

static void drafts_below_a_prefix_are_found(void **state)
{
    struct drafts *d = *state;
    struct node *node;
    char *etag = NULL;
    atomic_bool unlinked = false;
    const struct node_is in = {.key = "d/e/f", .version = "", .inode = 8};
    assert_int_equal(drafts_want(d, &in, "\"1\""), 0);
    assert_false(drafts_below(d, "d/")); /* nobody has opened it */
    node = drafts_find(d, "d/e/f");
    assert_int_equal(drafts_open(d, node, &unlinked, &etag), 0);
    assert_true(drafts_below(d, "d/"));
    assert_true(drafts_below(d, "d/e/"));
    assert_false(drafts_below(d, "d/e/f/"));
    assert_false(drafts_below(d, "e/"));
    drafts_closing(d, node);
    assert_true(drafts_below(d, "d/"));
    drafts_end(d, node);
    assert_false(drafts_below(d, "d/"));
    free(etag);
    nodes_forget(d->nodes, node, 1);
}

/* A call of another thread, and whether `flag` was set when it came back. */
struct other {
    void (*call)(struct other *o);
    struct drafts *d;
    struct node *node;
    atomic_bool *flag;
    bool saw;
    pthread_t thread;
    atomic_int id;
    atomic_bool ended;
};

static void *other_run(void *context)
{
    struct other *o = context;
    o->id = gettid();
    o->call(o);
    o->saw = *o->flag;
    o->ended = true;
    return NULL;
}

static bool sleeps(pid_t thread)
{
    char state = 0;
    _cleanup_free_ char *path = xprintf("/proc/self/task/%d/stat", (int)thread);
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return false;
    int n = fscanf(f, "%*d (%*[^)]) %c", &state);
    fclose(f);
    return n == 1 && state == 'S';
}

/* Returns when the call waits, or has ended. */
static void other_begin(struct other *o)
{
    assert_int_equal(pthread_create(&o->thread, NULL, other_run, o), 0);
    while (!o->ended && !sleeps(o->id))
        sched_yield();
}

static void call_unlink(struct other *o)
{
    o->node = drafts_unlink_begin(o->d, "a");
}

static void call_store(struct other *o)
{
    drafts_store_begin(o->d, o->node);
}

static void call_closing(struct other *o)
{
    drafts_closing(o->d, o->node);
}

static void an_unlink_waits_for_a_store(void **state)
{
    struct node *node;
    atomic_bool unlinked = false, stored = false;
    struct other o = {.call = call_unlink, .d = *state, .flag = &stored};
    assert_int_equal(drafts_create(o.d, &a, &unlinked, &node), 0);
    drafts_store_begin(o.d, node);
    other_begin(&o);
    stored = true;
    drafts_end(o.d, node);
    drafts_store_end(o.d, node);
    pthread_join(o.thread, NULL);
    assert_true(o.saw);
    assert_null(o.node);
    assert_false(unlinked);
    nodes_forget(o.d->nodes, node, 1);
}

/* The name is gone when the call, which `done` ends, comes back. */
static void waits_for_an_unlink(struct drafts *d, void (*call)(struct other *o),
                                void (*done)(struct drafts *d, const struct node *node))
{
    atomic_bool unlinked = false;
    struct other o = {.call = call, .d = d, .flag = &unlinked};
    assert_int_equal(drafts_create(d, &a, &unlinked, &o.node), 0);
    assert_ptr_equal(drafts_unlink_begin(d, "a"), o.node);
    other_begin(&o);
    drafts_unlink_end(d, o.node, true);
    pthread_join(o.thread, NULL);
    assert_true(o.saw);
    if (done != NULL)
        done(d, o.node);
    nodes_forget(d->nodes, o.node, 1);
}

static void a_store_waits_for_an_unlink(void **state)
{
    waits_for_an_unlink(*state, call_store, drafts_store_end);
}

static void the_last_close_waits_for_an_unlink(void **state)
{
    waits_for_an_unlink(*state, call_closing, NULL);
}

static void a_store_goes_on_after_a_failed_unlink(void **state)
{
    struct drafts *d = *state;
    struct node *node;
    atomic_bool unlinked = false;
    assert_int_equal(drafts_create(d, &a, &unlinked, &node), 0);
    assert_ptr_equal(drafts_unlink_begin(d, "a"), node);
    drafts_unlink_end(d, node, false);
    drafts_store_begin(d, node);
    drafts_store_end(d, node);
    assert_ptr_equal(drafts_unlink_begin(d, "a"), node);
    drafts_unlink_end(d, node, true);
    assert_true(unlinked);
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
        cmocka_unit_test_setup_teardown(drafts_below_a_prefix_are_found, begin, end),
        cmocka_unit_test_setup_teardown(an_unlink_waits_for_a_store, begin, end),
        cmocka_unit_test_setup_teardown(a_store_waits_for_an_unlink, begin, end),
        cmocka_unit_test_setup_teardown(the_last_close_waits_for_an_unlink, begin, end),
        cmocka_unit_test_setup_teardown(a_store_goes_on_after_a_failed_unlink, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
