/* Which copy is believed, and when none is. */
#include "proxy/primary/recovery_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cluster/command/command.h"

static const struct node p1 = {.id = "p1",
                               .role = NODE_PROXY,
                               .public_url = "http://h:1",
                               .control_url = "http://h:2",
                               .data_url = "",
                               .boot = "b"};

static void apply(const struct cluster_state **s, struct command cmd)
{
    const struct cluster_state *next;
    assert_int_equal(command_apply(*s, &cmd, &next, NULL), 0);
    state_unref(*s);
    *s = next;
}

/* A cluster whose primary has begun once, and then made so many buckets. */
static const struct cluster_state *cluster(const char *id, unsigned buckets, const char *letter)
{
    const struct cluster_state *s = state_new(id);
    apply(&s, (struct command){.kind = CMD_TERM_BEGIN, .node = &p1, .term = 1000});
    for (unsigned i = 0; i < buckets; i++) {
        char name[8];
        snprintf(name, sizeof name, "%s%u", letter, i);
        apply(&s, (struct command){
                      .kind = CMD_BUCKET_CREATE, .name = name, .props = &bucket_props_default});
    }
    return s;
}

static struct recovery_copy copy_of(const char *node, const struct cluster_state *s)
{
    return (struct recovery_copy){
        .node = node, .state = s, .digest = s != NULL ? recovery_digest(s) : 0};
}

static const struct recovery_wish any = {.cluster = "", .node = ""};

static void the_greatest_is_believed(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *present = cluster("c-new", 0, "");
    _cleanup_state_ const struct cluster_state *a = cluster("c-old", 2, "b");
    _cleanup_state_ const struct cluster_state *b = cluster("c-old", 4, "b");
    const struct recovery_copy copies[] = {copy_of("t1", a), copy_of("t2", b), copy_of("t3", b),
                                           copy_of("t4", NULL)};
    size_t best = 9;
    assert_int_equal(recovery_choose(present, copies, 4, &any, &best, NULL), 0);
    assert_int_equal(best, 1);
    const struct recovery_wish of_t1 = {.cluster = "", .node = "t1"};
    assert_int_equal(recovery_choose(present, copies, 4, &of_t1, &best, NULL), 0);
    assert_int_equal(best, 0);
    assert_int_equal(recovery_choose(present, copies + 3, 1, &any, &best, NULL), E_NOT_FOUND);
    assert_int_equal(recovery_choose(present, copies, 0, &any, &best, NULL), E_NOT_FOUND);
}

static void two_clusters_need_a_word(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *present = cluster("c-new", 0, "");
    _cleanup_state_ const struct cluster_state *a = cluster("c-one", 2, "b");
    _cleanup_state_ const struct cluster_state *b = cluster("c-two", 4, "b");
    const struct recovery_copy copies[] = {copy_of("t1", a), copy_of("t2", b)};
    const struct recovery_wish one = {.cluster = "c-one", .node = ""};
    size_t best = 9;
    struct error err = ERROR_INIT;
    assert_int_equal(recovery_choose(present, copies, 2, &any, &best, &err), E_INVALID);
    assert_non_null(strstr(err.message, "c-two"));
    assert_int_equal(recovery_choose(present, copies, 2, &one, &best, NULL), 0);
    assert_int_equal(best, 0);
}

static void who_disagrees_is_named(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *present = cluster("c-new", 0, "");
    _cleanup_state_ const struct cluster_state *a = cluster("c-old", 2, "a");
    _cleanup_state_ const struct cluster_state *b = cluster("c-old", 2, "b");
    const struct recovery_copy copies[] = {copy_of("t1", a), copy_of("t2", b)};
    const struct recovery_wish of_t2 = {.cluster = "", .node = "t2"};
    size_t best = 9;
    struct error err = ERROR_INIT;
    assert_int_equal(recovery_choose(present, copies, 2, &any, &best, &err), E_CORRUPT);
    assert_non_null(strstr(err.message, "'t1' and 't2'"));
    assert_int_equal(recovery_choose(present, copies, 2, &of_t2, &best, NULL), 0);
    assert_int_equal(best, 1);
}

static void a_cluster_of_its_own_is_not_replaced(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *present = cluster("c-new", 1, "n");
    _cleanup_state_ const struct cluster_state *old = cluster("c-old", 2, "b");
    const struct recovery_copy copies[] = {copy_of("t1", old)};
    size_t best;
    struct error err = ERROR_INIT;
    assert_int_equal(recovery_choose(present, copies, 1, &any, &best, &err), E_WRONG_CLUSTER);
    assert_non_null(strstr(err.message, "1 buckets"));
}

/* The directory was put back to an earlier time: the nodes know better, whatever it has done since.
 */
static void a_past_is_replaced_by_what_nodes_know(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *earlier = cluster("c-old", 1, "b");
    _cleanup_state_ const struct cluster_state *later = cluster("c-old", 3, "b");
    const struct recovery_copy copies[] = {copy_of("t1", later)};
    const struct recovery_copy known[] = {copy_of("t1", earlier)};
    size_t best = 9;
    assert_int_equal(recovery_choose(earlier, copies, 1, &any, &best, NULL), 0);
    assert_int_equal(best, 0);
    assert_int_equal(recovery_choose(later, known, 1, &any, &best, NULL), E_EXISTS);
}

/* One that asked, and whose copy could not be read, is as one that did not ask. */
static void whoever_gave_no_copy_may_know_more(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster("c-old", 1, "b");
    _cleanup_state_ const struct cluster_state *other = cluster("c-other", 1, "b");
    const char *const ids[] = {"t1", "t2"};
    for (size_t i = 0; i < 2; i++) {
        const struct node n = {.id = ids[i],
                               .role = NODE_TARGET,
                               .public_url = "http://h:1",
                               .control_url = "http://h:2",
                               .data_url = "http://h:3",
                               .weight = 1,
                               .boot = "b"};
        apply(&s, (struct command){.kind = CMD_NODE_JOIN, .node = &n, .fresh = true});
    }
    const struct recovery_wish of_t1 = {.cluster = "", .node = "t1"};
    const struct recovery_copy t1 = copy_of("t1", s);
    const struct recovery_copy heard[] = {t1, copy_of("t2", s)};
    const struct recovery_copy unread[] = {t1, copy_of("t2", NULL)};
    const struct recovery_copy of_other[] = {t1, copy_of("t2", other)};
    const struct recovery_copy *const missing[] = {unread, of_other};
    struct error err = ERROR_INIT;
    assert_int_equal(recovery_check_heard(&t1, heard, 2, &any, "p1", &err), 0);
    assert_int_equal(recovery_check_heard(&t1, heard, 1, &any, "p1", &err), E_PRECONDITION);
    for (size_t i = 0; i < 2; i++) {
        err = (struct error)ERROR_INIT;
        assert_int_equal(recovery_check_heard(&t1, missing[i], 2, &any, "p1", &err),
                         E_PRECONDITION);
        assert_non_null(strstr(err.message, "node 't2' has not given"));
        assert_non_null(strstr(err.message, "--node t1"));
        assert_int_equal(recovery_check_heard(&t1, missing[i], 2, &of_t1, "p1", NULL), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_greatest_is_believed),
        cmocka_unit_test(two_clusters_need_a_word),
        cmocka_unit_test(who_disagrees_is_named),
        cmocka_unit_test(a_cluster_of_its_own_is_not_replaced),
        cmocka_unit_test(a_past_is_replaced_by_what_nodes_know),
        cmocka_unit_test(whoever_gave_no_copy_may_know_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
