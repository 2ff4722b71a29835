#include "target/cold/list_owner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "cluster/command/command.h"

enum { TARGETS = 5, LISTS = 400 };

static void apply(const struct cluster_state **s, const struct command *cmd)
{
    const struct cluster_state *next;
    assert_int_equal(command_apply(*s, cmd, &next, NULL), 0);
    state_unref(*s);
    *s = next;
}

static const struct cluster_state *with_targets(void)
{
    const struct cluster_state *s = state_new("c");
    for (unsigned i = 0; i < TARGETS; i++) {
        char id[16];
        snprintf(id, sizeof id, "t%u", i);
        const struct node n = {.id = id,
                               .role = NODE_TARGET,
                               .public_url = "http://h:1",
                               .control_url = "http://h:2",
                               .data_url = "http://h:3",
                               .weight = 1024,
                               .boot = "b"};
        apply(&s, &(struct command){.kind = CMD_NODE_JOIN, .node = &n});
    }
    return s;
}

static void set_state(const struct cluster_state **s, const char *id, enum node_state state)
{
    apply(s, &(struct command){.kind = CMD_NODE_STATE, .name = id, .node_state = state});
}

static void lists_are_spread(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = with_targets();
    unsigned count[TARGETS] = {0};
    for (unsigned i = 0; i < LISTS; i++) {
        char job[16];
        snprintf(job, sizeof job, "pre-%u", i);
        const struct list_of_job list = {.job = job, .bucket_id = 1, .prefix = "a/"};
        const struct node *owner = list_owner(s, &list, NULL, 0);
        assert_ptr_equal(owner, list_owner(s, &list, NULL, 0));
        count[owner - s->smap.nodes]++;
    }
    for (unsigned i = 0; i < TARGETS; i++)
        assert_in_range(count[i], LISTS / TARGETS / 2, 2 * LISTS / TARGETS);
}

static void who_is_lost_is_followed_by_others(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = with_targets();
    const struct list_of_job list = {.job = "srt-1", .bucket_id = 7, .prefix = ""};
    const char *lost[TARGETS];
    for (size_t i = 0; i < TARGETS; i++) {
        const struct node *owner = list_owner(s, &list, lost, i);
        assert_non_null(owner);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(owner->id, lost[k]);
        lost[i] = owner->id;
    }
    assert_null(list_owner(s, &list, lost, TARGETS));
}

static void only_active_targets(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = with_targets();
    const struct list_of_job list = {.job = "cpy-1", .bucket_id = 7, .prefix = "x"};
    char first[16], second[16];
    snprintf(first, sizeof first, "%s", list_owner(s, &list, NULL, 0)->id);
    const char *lost[] = {first};
    snprintf(second, sizeof second, "%s", list_owner(s, &list, lost, 1)->id);
    set_state(&s, first, NODE_UNREACHABLE);
    assert_string_equal(list_owner(s, &list, NULL, 0)->id, second);
    set_state(&s, first, NODE_ACTIVE);
    assert_string_equal(list_owner(s, &list, NULL, 0)->id, first);
    for (unsigned i = 0; i < TARGETS; i++)
        set_state(&s, s->smap.nodes[i].id, NODE_UNREACHABLE);
    assert_null(list_owner(s, &list, NULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_spread),
        cmocka_unit_test(who_is_lost_is_followed_by_others),
        cmocka_unit_test(only_active_targets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
