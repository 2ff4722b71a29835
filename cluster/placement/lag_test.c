#include "cluster/placement/lag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "cluster/command/command.h"
#include "cluster/documents/delta.h"
#include "common/jsonx.h"

static const struct cluster_state *s;

/* What a metastore keeps of a change leads to the same, and so does the document. */
static void check_kept(const struct cluster_state *next)
{
    _cleanup_json_ json_t *delta = state_delta(s, next);
    _cleanup_json_ json_t *doc = state_to_json(next);
    struct cluster_state *patched, *read;
    assert_int_equal(state_patch(s, delta, &patched, NULL), 0);
    assert_int_equal(state_from_json(doc, &read, NULL), 0);
    _cleanup_json_ json_t *a = state_to_json(patched);
    _cleanup_json_ json_t *b = state_to_json(read);
    assert_true(json_equal(a, doc));
    assert_true(json_equal(b, doc));
    state_unref(patched);
    state_unref(read);
}

static int try_to(struct command cmd)
{
    const struct cluster_state *next;
    int r = command_apply(s, &cmd, &next, NULL);
    if (r != 0)
        return r;
    if (next != s)
        check_kept(next);
    state_unref(s);
    s = next;
    return 0;
}

static void apply(struct command cmd)
{
    assert_int_equal(try_to(cmd), 0);
}

static struct node target(const char *id, const char *boot)
{
    return (struct node){.id = id,
                         .role = NODE_TARGET,
                         .public_url = "http://h:1",
                         .control_url = "http://h:2",
                         .data_url = "http://h:3",
                         .weight = 1024,
                         .boot = boot};
}

static void join(const char *id, const char *boot, bool lost)
{
    const struct node n = target(id, boot);
    bool known = smap_node(&s->smap, id) != NULL;
    apply((struct command){.kind = CMD_NODE_JOIN, .node = &n, .fresh = !known, .lost = lost});
}

static void set(const char *id, enum node_state state)
{
    apply((struct command){.kind = CMD_NODE_STATE, .name = id, .node_state = state, .force = true});
}

static void create(const char *name, uint32_t copies)
{
    struct bucket_props props = BUCKET_PROPS_DEFAULT;
    props.copies = copies;
    apply((struct command){.kind = CMD_BUCKET_CREATE, .name = name, .props = &props});
}

static void set_copies(const char *name, int copies)
{
    _cleanup_json_ json_t *patch = json_pack("{s:i}", "copies", copies);
    apply((struct command){.kind = CMD_BUCKET_PROPS, .name = name, .patch = patch});
}

static int repaired(void)
{
    return try_to(
        (struct command){.kind = CMD_LAG_DONE, .lagged = s->smap.lagged, .placed = s->smap.placed});
}

static const struct node *node(const char *id)
{
    return smap_node(&s->smap, id);
}

static int setup(void **unused)
{
    (void)unused;
    s = state_new("c");
    join("t1", "a", false);
    join("t2", "a", false);
    join("t3", "a", false);
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    state_unref(s);
    return 0;
}

static void absent(const char *id, bool is)
{
    apply((struct command){.kind = CMD_NODE_ABSENT, .name = id, .absent = is});
}

static void who_was_absent_in_maintenance_may_have_lost_all(void **unused)
{
    (void)unused;
    create("b", 2);
    set("t1", NODE_MAINTENANCE);
    absent("t1", true);
    absent("t1", false);
    assert_int_equal(node("t1")->lag, LAG_MISSED);
    assert_int_equal(node("t1")->missed_since, 0);
    set("t2", NODE_MAINTENANCE);
    assert_true(lag_spares_an_owner(s, &s->bmd.buckets[0]));
    absent("t2", true); /* which may have alone what t1 has lost */
    assert_false(lag_spares_an_owner(s, &s->bmd.buckets[0]));
    set("t1", NODE_ACTIVE);
    assert_int_equal(node("t1")->missed_since, 0);
}

static void one_copy_knows_no_lag(void **unused)
{
    (void)unused;
    create("b", 1);
    join("t1", "b", false);
    assert_int_equal(node("t1")->lag, LAG_NONE);
    set("t2", NODE_UNREACHABLE);
    assert_int_equal(node("t2")->lag, LAG_MISSED);
    set("t2", NODE_ACTIVE);
    assert_int_equal(node("t2")->lag, LAG_NONE);
    assert_int_equal(node("t2")->missed_since, 0);
    assert_int_equal(node("t2")->gone_since, 0);
    set("t2", NODE_UNREACHABLE);
    join("t2", "b", false);
    assert_int_equal(node("t2")->lag, LAG_NONE);
    assert_int_equal(state_format(s), 1);
}

static void who_was_away_when_copies_began_has_missed_them(void **unused)
{
    (void)unused;
    set("t2", NODE_UNREACHABLE);
    create("b", 2);
    assert_int_equal(state_format(s), 2);
    set("t2", NODE_ACTIVE);
    assert_int_equal(node("t2")->lag, LAG_MISSED);
    assert_true(node("t2")->missed_since > 0);
}

static void the_greater_lag_and_the_first_miss_stay(void **unused)
{
    (void)unused;
    create("b", 2);
    join("t1", "b", false);
    assert_int_equal(node("t1")->lag, LAG_RESTARTED);
    set("t1", NODE_UNREACHABLE);
    uint64_t first = s->version;
    assert_int_equal(node("t1")->lag, LAG_MISSED);
    assert_int_equal(node("t1")->missed_since, first);
    join("t1", "c", false);
    assert_int_equal(node("t1")->lag, LAG_MISSED);
    assert_int_equal(node("t1")->gone_since, 0);
    set("t1", NODE_UNREACHABLE);
    assert_int_equal(node("t1")->missed_since, first);
    assert_int_equal(node("t1")->gone_since, s->version);
    assert_true(s->version > first);
}

static void the_same_run_again_does_not_lag(void **unused)
{
    (void)unused;
    create("b", 2);
    uint64_t version = s->version;
    join("t1", "a", false);
    assert_int_equal(s->version, version);
    assert_int_equal(node("t1")->lag, LAG_NONE);
    assert_int_equal(s->smap.lagged, 0);
}

static void without_its_disks_it_has_missed_all(void **unused)
{
    (void)unused;
    create("b", 2);
    join("t1", "b", true);
    assert_int_equal(node("t1")->lag, LAG_MISSED);
    assert_int_equal(node("t1")->missed_since, 0);
}

static void who_left_in_order_has_missed_what_came_after(void **unused)
{
    (void)unused;
    create("b", 2);
    set("t1", NODE_MAINTENANCE);
    uint64_t left = s->version;
    assert_int_equal(node("t1")->lag, LAG_NONE);
    set("t1", NODE_ACTIVE);
    assert_int_equal(node("t1")->lag, LAG_MISSED);
    assert_int_equal(node("t1")->missed_since, left);
}

static void a_repair_ends_it_and_only_what_it_saw(void **unused)
{
    (void)unused;
    create("b", 2);
    join("t1", "b", false);
    const struct command early = {
        .kind = CMD_LAG_DONE, .lagged = s->smap.lagged, .placed = s->smap.placed};
    join("t2", "b", false);
    assert_int_equal(try_to(early), E_STALE_MAP);
    assert_int_equal(repaired(), 0);
    assert_int_equal(node("t1")->lag, LAG_NONE);
    assert_int_equal(node("t2")->lag, LAG_NONE);
    uint64_t version = s->version;
    assert_int_equal(repaired(), 0); /* again: nothing changes */
    assert_int_equal(s->version, version);

    join("t1", "c", false);
    const struct command before = {
        .kind = CMD_LAG_DONE, .lagged = s->smap.lagged, .placed = s->smap.placed};
    join("t4", "a", false);
    assert_int_equal(try_to(before), E_STALE_MAP);
}

/* It came while the repair ran: nobody has compared it. */
static void who_comes_back_moves_the_fence(void **unused)
{
    (void)unused;
    create("b", 2);
    set("t1", NODE_UNREACHABLE);
    const struct command cmd = {
        .kind = CMD_LAG_DONE, .lagged = s->smap.lagged, .placed = s->smap.placed};
    set("t1", NODE_ACTIVE);
    assert_int_equal(try_to(cmd), E_STALE_MAP);
}

static void not_while_somebody_is_away_who_may_know_more(void **unused)
{
    (void)unused;
    create("b", 2);
    set("t1", NODE_UNREACHABLE);
    set("t1", NODE_ACTIVE);
    set("t2", NODE_UNREACHABLE); /* had what t1 missed */
    assert_int_equal(repaired(), 0);
    assert_int_equal(node("t1")->lag, LAG_MISSED);
    set("t2", NODE_ACTIVE);
    assert_int_equal(repaired(), 0);
    assert_int_equal(node("t1")->lag, LAG_NONE);
    assert_int_equal(node("t2")->lag, LAG_NONE);

    set("t2", NODE_UNREACHABLE);
    set("t1", NODE_UNREACHABLE); /* later: t2 has nothing that t1 has not */
    set("t1", NODE_ACTIVE);
    assert_int_equal(repaired(), 0);
    assert_int_equal(node("t1")->lag, LAG_NONE);
    assert_int_equal(node("t2")->lag, LAG_MISSED); /* not active: nobody has compared it */
}

static void raised_copies_are_filled_by_a_repair(void **unused)
{
    (void)unused;
    create("b", 1);
    set_copies("b", 2);
    const struct bucket *b = bmd_bucket(&s->bmd, "b");
    assert_int_equal(b->filled, 1);
    struct command cmd = {.kind = CMD_COPIES_FILLED,
                          .raised = b->raised,
                          .lagged = s->smap.lagged,
                          .placed = s->smap.placed};
    set_copies("b", 3);
    apply(cmd); /* of a repair that began before */
    assert_int_equal(bmd_bucket(&s->bmd, "b")->filled, 1);
    cmd.raised = bmd_bucket(&s->bmd, "b")->raised;
    apply(cmd);
    assert_int_equal(bmd_bucket(&s->bmd, "b")->filled, 3);
}

static void deletions_are_remembered_while_somebody_may_not_know_them(void **unused)
{
    (void)unused;
    apply((struct command){.kind = CMD_MOVES_DONE, .placed = s->smap.placed});
    create("one", 1);
    set("t2", NODE_UNREACHABLE);
    assert_true(lag_lets_forget(s)); /* what t2 has nobody else has */
    create("b", 2);
    assert_false(lag_lets_forget(s));
    set("t2", NODE_ACTIVE);
    assert_false(lag_lets_forget(s));
    apply(
        (struct command){.kind = CMD_LAG_DONE, .lagged = s->smap.lagged, .placed = s->smap.placed});
    assert_true(lag_lets_forget(s));
    set_copies("b", 3);
    assert_false(lag_lets_forget(s));
    struct command cmd = {
        .kind = CMD_COPIES_FILLED, .lagged = s->smap.lagged, .placed = s->smap.placed};
    cmd.raised = bmd_bucket(&s->bmd, "b")->raised;
    apply(cmd);
    assert_true(lag_lets_forget(s));
    join("t4", "a", false);
    assert_false(lag_lets_forget(s)); /* objects are on their way to it */
}

#define lag_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        lag_test(who_was_absent_in_maintenance_may_have_lost_all),
        lag_test(one_copy_knows_no_lag),
        lag_test(who_was_away_when_copies_began_has_missed_them),
        lag_test(the_greater_lag_and_the_first_miss_stay),
        lag_test(the_same_run_again_does_not_lag),
        lag_test(without_its_disks_it_has_missed_all),
        lag_test(who_left_in_order_has_missed_what_came_after),
        lag_test(a_repair_ends_it_and_only_what_it_saw),
        lag_test(who_comes_back_moves_the_fence),
        lag_test(not_while_somebody_is_away_who_may_know_more),
        lag_test(raised_copies_are_filled_by_a_repair),
        lag_test(deletions_are_remembered_while_somebody_may_not_know_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
