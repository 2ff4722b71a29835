/* Terms, nodes and settings; every command in every kind of state. */
#include "cluster/testing/command_fixture.h"

#include "cluster/documents/layout.h"
#include "cluster/testing/random_command.h"

static void a_term_begins_with_its_primary(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    assert_int_equal(s->term, 1);
    assert_string_equal(s->primary, "p1");
    assert_int_equal(smap_node(&s->smap, "p1")->since_ms, 100);
    assert_unchanged(s, (struct command){.kind = CMD_TERM_BEGIN, .node = &p1, .term = 1});
    struct node other = p1;
    other.id = "p2";
    assert_refused(s, (struct command){.kind = CMD_TERM_BEGIN, .node = &other, .term = 1},
                   E_STALE_MAP);
    assert_refused(s, (struct command){.kind = CMD_TERM_BEGIN, .node = &t1, .term = 2}, E_INVALID);
    apply(&s, (struct command){.kind = CMD_TERM_BEGIN, .node = &other, .term = 2});
    assert_int_equal(s->term, 2);
    assert_int_equal(s->version, 3);
    assert_string_equal(s->primary, "p2");
    assert_int_equal(s->term_version, 3);
}

static void a_node_joins_once_and_may_come_back(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    const struct command join = {.kind = CMD_NODE_JOIN, .node = &t1, .wall_ms = 900};
    assert_unchanged(s, join);
    apply(&s, (struct command){.kind = CMD_NODE_STATE,
                               .name = "t1",
                               .node_state = NODE_UNREACHABLE,
                               .wall_ms = 300});
    assert_int_equal(smap_node(&s->smap, "t1")->since_ms, 300);
    apply(&s, join);
    assert_int_equal(smap_node(&s->smap, "t1")->state, NODE_ACTIVE);
    assert_int_equal(smap_node(&s->smap, "t1")->since_ms, 900);
    struct node proxy = t1;
    proxy.role = NODE_PROXY;
    assert_refused(s, (struct command){.kind = CMD_NODE_JOIN, .node = &proxy}, E_EXISTS);
}

/* What one holds that was removed may have been written anew, or deleted, since. */
static void a_new_target_comes_with_nothing(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    struct node t2 = t1;
    t2.id = "t2";
    struct node p2 = p1;
    p2.id = "p2";
    struct command join = {.kind = CMD_NODE_JOIN, .node = &t2};
    apply(&s,
          (struct command){.kind = CMD_BUCKET_CREATE, .name = "b", .props = &bucket_props_default});
    assert_refused(s, join, E_MOUNTPATH);
    apply(&s, (struct command){.kind = CMD_NODE_JOIN, .node = &p2});
    apply(&s, (struct command){.kind = CMD_NODE_JOIN, .node = &t1});
    assert_int_equal(s->smap.earlier_count, 0);
    join.fresh = true;
    apply(&s, join);
    assert_non_null(smap_node(&s->smap, "t2"));
    assert_int_equal(s->smap.earlier_count, 1);
}

/* From the command that changes who owns until the moves by that very set are said to be done. */
static void earlier_owners_are_remembered(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    struct node t2 = t1;
    t2.id = "t2";
    const struct command join = {.kind = CMD_NODE_JOIN, .node = &t2, .fresh = true};
    struct command state = {.kind = CMD_NODE_STATE, .name = "t2"};
    apply(&s, join);
    assert_int_equal(s->smap.earlier_count, 0); /* there are no buckets */
    apply(&s,
          (struct command){.kind = CMD_BUCKET_CREATE, .name = "b", .props = &bucket_props_default});
    uint64_t placed = s->smap.placed;
    state.node_state = NODE_UNREACHABLE;
    apply(&s, state);
    state.node_state = NODE_ACTIVE;
    apply(&s, state);
    assert_int_equal(s->smap.placed, placed); /* who comes and goes owns all the time */
    state.node_state = NODE_UNREACHABLE;
    apply(&s, state);
    state.node_state = NODE_MAINTENANCE;
    assert_refused(s, state, E_NODE_STATE); /* it could not send what it has */
    state.node_state = NODE_ACTIVE;
    apply(&s, state);
    state.node_state = NODE_MAINTENANCE;
    apply(&s, state);
    assert_refused(
        s,
        (struct command){.kind = CMD_NODE_STATE, .name = "t1", .node_state = NODE_DECOMMISSIONING},
        E_NODE_STATE); /* nobody could take what it has */
    assert_int_equal(s->smap.placed, s->smap.version);
    assert_int_equal(s->smap.earlier_count, 1);
    assert_int_equal(s->smap.earlier[0].number, placed);
    assert_int_equal(s->smap.earlier[0].count, 2);
    assert_string_equal(s->smap.earlier[0].members[1].id, "t2");
    struct command done = {.kind = CMD_MOVES_DONE, .placed = placed};
    assert_refused(s, done, E_STALE_MAP);
    state.node_state = NODE_DECOMMISSIONING;
    apply(&s, state);
    assert_int_equal(s->smap.earlier_count, 1); /* it owned nothing before, either */
    done.placed = s->smap.placed;
    apply(&s, done);
    assert_int_equal(s->smap.earlier_count, 0);
    assert_unchanged(s, done);
    apply(&s, (struct command){.kind = CMD_NODE_REMOVE, .name = "t2"});
    assert_int_equal(s->smap.earlier_count, 0);
}

/* Directories that nothing is mounted on, for instance: its objects would seem not to exist. */
static void a_target_that_knows_nothing_any_more_is_not_let_in(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    struct node again = t1;
    again.boot = "another";
    const struct command join = {.kind = CMD_NODE_JOIN, .node = &again, .fresh = true};
    apply(&s, join); /* there are no objects yet that could be missing */
    apply(&s,
          (struct command){.kind = CMD_BUCKET_CREATE, .name = "b", .props = &bucket_props_default});
    assert_unchanged(s, join); /* the same process repeats its call */
    again.boot = "a third";
    assert_refused(s, join, E_MOUNTPATH);
    apply(&s, (struct command){.kind = CMD_NODE_JOIN, .node = &again});
}

static void maintenance_outlasts_a_join(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    apply(&s,
          (struct command){.kind = CMD_NODE_STATE, .name = "t1", .node_state = NODE_MAINTENANCE});
    struct node again = t1;
    again.boot = "b2";
    apply(&s, (struct command){.kind = CMD_NODE_JOIN, .node = &again});
    assert_int_equal(smap_node(&s->smap, "t1")->state, NODE_MAINTENANCE);
    assert_string_equal(smap_node(&s->smap, "t1")->boot, "b2");
    assert_refused(
        s, (struct command){.kind = CMD_NODE_STATE, .name = "t1", .node_state = NODE_UNREACHABLE},
        E_NODE_STATE);
}

static void the_primary_stays(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    struct command down = {.kind = CMD_NODE_STATE, .name = "p1", .node_state = NODE_UNREACHABLE};
    assert_refused(s, down, E_NODE_STATE);
    assert_refused(s, (struct command){.kind = CMD_NODE_REMOVE, .name = "p1"}, E_NODE_STATE);
}

static void a_node_is_removed_only_when_it_is_away(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    const struct command leave = {.kind = CMD_NODE_REMOVE, .name = "t1"};
    assert_refused(s, leave, E_NODE_STATE);
    apply(&s,
          (struct command){.kind = CMD_NODE_STATE, .name = "t1", .node_state = NODE_UNREACHABLE});
    apply(&s, leave);
    assert_null(smap_node(&s->smap, "t1"));
    assert_refused(s, leave, E_NODE_NOT_FOUND);
}

static void a_limit_holds_for_nodes(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    apply(&s, (struct command){.kind = CMD_CONFIG_SET, .name = "nodes_max", .text = "2"});
    struct node more = t1;
    more.id = "t2";
    assert_refused(s, (struct command){.kind = CMD_NODE_JOIN, .node = &more}, E_OVERLOAD);
    struct node again = t1;
    again.boot = "b9";
    apply(&s, (struct command){.kind = CMD_NODE_JOIN, .node = &again});
}

static void settings_are_checked_and_go_back(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    struct command set = {.kind = CMD_CONFIG_SET, .name = "buckets_max", .text = "1"};
    apply(&s, set);
    assert_string_equal(config_get(&s->config, "buckets_max"), "1");
    assert_unchanged(s, set);
    apply(&s,
          (struct command){.kind = CMD_BUCKET_CREATE, .name = "a", .props = &bucket_props_default});
    assert_refused(
        s, (struct command){.kind = CMD_BUCKET_CREATE, .name = "b", .props = &bucket_props_default},
        E_OVERLOAD);
    set.text = "none";
    assert_refused(s, set, E_INVALID);
    set.text = "0";
    assert_refused(s, set, E_INVALID);
    set.text = NULL;
    apply(&s, set);
    assert_null(config_get(&s->config, "buckets_max"));
    assert_unchanged(s, set);
    assert_refused(s, (struct command){.kind = CMD_CONFIG_SET, .name = "nothing", .text = "1"},
                   E_NOT_FOUND);
    assert_refused(s, (struct command){.kind = CMD_CONFIG_SET, .name = "nothing"}, E_NOT_FOUND);
}

static void what_lists_rely_on_stays_while_objects_move(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    struct command set = {.kind = CMD_CONFIG_SET, .name = "rebalance_keep", .text = "1m"};
    apply(&s, set);
    apply(&s,
          (struct command){.kind = CMD_BUCKET_CREATE, .name = "a", .props = &bucket_props_default});
    struct node more = t1;
    more.id = "t2";
    apply(&s, (struct command){.kind = CMD_NODE_JOIN, .node = &more, .fresh = true});
    assert_false(layout_is_settled(&s->smap));
    assert_unchanged(s, set);
    set.text = "5s";
    assert_refused(s, set, E_JOB_STATE);
    set.text = NULL;
    assert_refused(s, set, E_JOB_STATE);
    apply(&s, (struct command){.kind = CMD_CONFIG_SET, .name = "rebalance_rate", .text = "1MiB"});
    apply(&s, (struct command){.kind = CMD_MOVES_DONE, .placed = s->smap.placed});
    apply(&s, set);
    assert_null(config_get(&s->config, "rebalance_keep"));
}

/* --- every command, in every kind of state --------------------------------------------------- */

static uint64_t parts_changed(const struct cluster_state *a, const struct cluster_state *b)
{
    return (b->smap.version - a->smap.version) + (b->bmd.version - a->bmd.version) +
           (b->config.version - a->config.version) + (b->jobs.version - a->jobs.version) +
           (b->access.version - a->access.version);
}

static char *text_of(const struct cluster_state *s)
{
    _cleanup_json_ json_t *doc = state_to_json(s);
    return json_text(doc);
}

static void check_one(const struct cluster_state **s, const struct command *cmd, uint64_t seed)
{
    _cleanup_free_ char *before = text_of(*s);
    _cleanup_state_ const struct cluster_state *next = NULL;
    int r = command_apply(*s, cmd, &next, NULL);
    _cleanup_free_ char *after = text_of(*s);
    if (strcmp(before, after) != 0)
        fail_msg("seed %" PRIu64 ": a command of kind %d changed its input", seed, cmd->kind);
    if (r != 0 || next == *s)
        return;
    if (next->version != (*s)->version + 1 || parts_changed(*s, next) != 1)
        fail_msg("seed %" PRIu64 ": kind %d took version %" PRIu64 " to %" PRIu64, seed, cmd->kind,
                 (*s)->version, next->version);
    _cleanup_state_ const struct cluster_state *again = NULL;
    if (command_apply(next, cmd, &again, NULL) == 0 && again != next)
        fail_msg("seed %" PRIu64 ": kind %d is not idempotent", seed, cmd->kind);
    state_unref(*s);
    *s = steal(next);
}

static void commands_are_pure_idempotent_and_count(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct rng rng;
        rng_seed(&rng, seed);
        _cleanup_state_ const struct cluster_state *s = state_new("c-random");
        for (unsigned step = 0; step < 200; step++) {
            struct arena *a = arena_new(512);
            struct command cmd = random_command(&rng, s, a);
            struct command *copy = command_copy(&cmd);
            job_unref(cmd.job);
            json_decref(cmd.patch);
            arena_free(a);
            check_one(&s, copy, seed); /* the copy stands alone */
            command_free(copy);
        }
        assert_true(s->version > 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_term_begins_with_its_primary),
        cmocka_unit_test(a_node_joins_once_and_may_come_back),
        cmocka_unit_test(a_new_target_comes_with_nothing),
        cmocka_unit_test(earlier_owners_are_remembered),
        cmocka_unit_test(a_target_that_knows_nothing_any_more_is_not_let_in),
        cmocka_unit_test(maintenance_outlasts_a_join),
        cmocka_unit_test(the_primary_stays),
        cmocka_unit_test(a_node_is_removed_only_when_it_is_away),
        cmocka_unit_test(a_limit_holds_for_nodes),
        cmocka_unit_test(settings_are_checked_and_go_back),
        cmocka_unit_test(what_lists_rely_on_stays_while_objects_move),
        cmocka_unit_test(commands_are_pure_idempotent_and_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
