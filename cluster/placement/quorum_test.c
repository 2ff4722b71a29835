/* Every set of owners that may have a write against every set that may be heard: they share one who
 * says so, whatever has befallen the cluster in between. */
#include "cluster/placement/quorum.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "cluster/testing/test_state.h"

static const struct cluster_state *s;
static const char *const ids[] = {"t1", "t2", "t3", "t4", "t5", "t6"};

static void apply(struct command cmd)
{
    test_state_apply(&s, &cmd);
}

static void join(const char *id, const char *boot, bool lost)
{
    test_state_join(&s, id, boot, lost);
}

static void set(const char *id, enum node_state state)
{
    apply((struct command){.kind = CMD_NODE_STATE, .name = id, .node_state = state, .force = true});
}

static void begin_with(unsigned targets, uint32_t copies, enum write_quorum quorum)
{
    struct bucket_props props = BUCKET_PROPS_DEFAULT;
    props.copies = copies;
    props.write_quorum = quorum;
    s = state_new("c");
    for (unsigned i = 0; i < targets; i++)
        join(ids[i], "a", false);
    apply((struct command){.kind = CMD_BUCKET_CREATE, .name = "b", .props = &props});
}

static void begin(unsigned targets, uint32_t copies)
{
    begin_with(targets, copies, WRITE_MAJORITY);
}

static const struct bucket *bucket(void)
{
    return bmd_bucket(&s->bmd, "b");
}

/* The targets of a set of bits: bit i is ids[i]. */
static size_t nodes_of(unsigned bits, const struct node **out)
{
    size_t count = 0;
    for (unsigned i = 0; i < sizeof ids / sizeof *ids; i++) {
        const struct node *n = smap_node(&s->smap, ids[i]);
        if ((bits >> i & 1) != 0 && n != NULL)
            out[count++] = n;
    }
    return count;
}

static bool is_known_to(unsigned bits)
{
    const struct node *nodes[sizeof ids / sizeof *ids];
    size_t count = nodes_of(bits, nodes);
    return quorum_knows(s, bucket(), "o", nodes, count);
}

static unsigned owners_now(size_t *need)
{
    struct owners o;
    unsigned bits = 0;
    owners_of(s, bucket(), "o", &o);
    for (size_t i = 0; i < o.count; i++)
        bits |= 1u << (o.all[i]->id[1] - '1');
    *need = quorum_of(&o);
    return bits;
}

/* Writes that `need` of these owners have: whoever is heard now, someone of `keeps` among them has
 * it. */
static void check_all(unsigned owners, size_t need, unsigned keeps)
{
    unsigned enough = 0;
    for (unsigned w = 0; w < 64; w++) {
        if ((w & ~owners) != 0 || (size_t)__builtin_popcount(w) < need)
            continue;
        for (unsigned heard = 0; heard < 64; heard++) {
            if (!is_known_to(heard))
                continue;
            enough++;
            assert_int_not_equal(w & heard & keeps, 0);
        }
    }
    assert_true(enough > 0);
}

static void any_two_majorities_meet(void **unused)
{
    (void)unused;
    for (uint32_t copies = 2; copies <= 6; copies++) {
        size_t need;
        begin(6, copies);
        unsigned owners = owners_now(&need);
        assert_int_equal(need, copies / 2 + 1);
        check_all(owners, need, 63);
        state_unref(s);
    }
}

static void who_has_lost_what_it_had_does_not_count(void **unused)
{
    (void)unused;
    size_t need;
    begin(3, 3);
    unsigned owners = owners_now(&need);
    join("t2", "b", true);
    check_all(owners, need, 7 & ~2u);
    assert_true(is_known_to(5));
    assert_false(is_known_to(3));
    state_unref(s);
}

static void who_was_only_away_counts(void **unused)
{
    (void)unused;
    size_t need;
    begin(3, 3);
    unsigned owners = owners_now(&need);
    set("t2", NODE_UNREACHABLE);
    set("t2", NODE_ACTIVE);
    assert_int_equal(smap_node(&s->smap, "t2")->lag, LAG_MISSED);
    check_all(owners, need, 7);
    assert_true(is_known_to(3));
    state_unref(s);
}

/* Two steps: what the first owners have is known by the third ones', while objects move. */
static void the_majority_of_each_earlier_set_is_heard(void **unused)
{
    (void)unused;
    size_t need, then;
    begin(4, 3);
    unsigned owners = owners_now(&need);
    join("t5", "a", false);
    set("t1", NODE_MAINTENANCE);
    unsigned between = owners_now(&then);
    set("t2", NODE_MAINTENANCE);
    assert_int_equal(s->smap.earlier_count, 3);
    check_all(owners, need, 63);
    check_all(between, then, 63);
    state_unref(s);
}

/* Who has left for good may have had it: all others of that time are heard. */
static void who_is_gone_for_good_is_missing_from_its_set(void **unused)
{
    (void)unused;
    for (unsigned gone = 0; gone < 3; gone++) {
        size_t need;
        begin(3, 3);
        join("t4", "a", false);
        apply((struct command){.kind = CMD_MOVES_DONE, .placed = s->smap.placed});
        unsigned owners = owners_now(&need);
        set(ids[gone], NODE_UNREACHABLE);
        apply((struct command){.kind = CMD_NODE_REMOVE, .name = ids[gone]});
        check_all(owners, need, 63 & ~(1u << gone));
        state_unref(s);
    }
}

static void a_list_misses_fewer_than_a_majority(void **unused)
{
    (void)unused;
    begin(4, 3);
    assert_true(quorum_lists(s, bucket()));
    set("t1", NODE_UNREACHABLE);
    assert_true(quorum_lists(s, bucket()));
    join("t2", "b", true);
    assert_false(quorum_lists(s, bucket()));
    state_unref(s);
    begin(2, 3);
    set("t1", NODE_UNREACHABLE);
    assert_true(quorum_lists(s, bucket()));
    set("t2", NODE_UNREACHABLE);
    assert_false(quorum_lists(s, bucket()));
    state_unref(s);
}

static bool all_know(unsigned bits)
{
    const struct node *nodes[sizeof ids / sizeof *ids];
    size_t count = nodes_of(bits, nodes);
    return owners_know(s, bucket(), "o", nodes, count);
}

/* Where a write is on all owners that are there. */
static void of_all_owners_one_that_missed_nothing_knows(void **unused)
{
    (void)unused;
    for (unsigned away = 0; away < 8; away++) {
        begin_with(3, 3, WRITE_ALL);
        for (unsigned i = 0; i < 3; i++) {
            if ((away >> i & 1) != 0)
                set(ids[i], NODE_UNREACHABLE);
        }
        for (unsigned i = 0; i < 3; i++)
            join(ids[i], "b", false); /* the others restart: what they had they have */
        for (unsigned heard = 0; heard < 8; heard++)
            assert_int_equal(all_know(heard), (heard & ~away) != 0);
        state_unref(s);
    }
}

static void so_it_is_of_each_earlier_set(void **unused)
{
    (void)unused;
    size_t need;
    begin_with(3, 3, WRITE_ALL);
    join("t4", "a", false);
    join("t5", "a", false);
    join("t6", "a", false);
    const unsigned came = owners_now(&need) & ~7u;
    assert_int_not_equal(came, 0);
    assert_false(all_know(came)); /* what there was is on its way to them */
    assert_true(all_know(came | 1));
    apply((struct command){.kind = CMD_MOVES_DONE, .placed = s->smap.placed});
    assert_true(all_know(came));
    state_unref(s);
}

/* Others ask by an older map than this target's. */
static void who_has_lost_something_says_so(void **unused)
{
    (void)unused;
    begin(4, 3);
    const struct cluster_state *before = state_ref(s);
    set("t3", NODE_UNREACHABLE);
    join("t3", "b", false);
    assert_false(owners_are_news(before, s, "t3")); /* it was away, and has what it had */
    apply((struct command){.kind = CMD_NODE_ABSENT, .name = "t1", .absent = true});
    assert_true(owners_are_news(before, s, "t1")); /* it may give up a disk now */
    assert_false(owners_are_news(before, s, "t2"));
    join("t2", "b", true);
    assert_true(owners_are_news(before, s, "t2"));
    state_unref(before);
    before = state_ref(s);
    apply((struct command){.kind = CMD_NODE_ABSENT, .name = "t1", .absent = false});
    assert_false(owners_are_news(before, s, "t1")); /* that was known before */
    join("t5", "a", false);
    assert_true(owners_are_news(before, s, "t1"));
    state_unref(before);
    state_unref(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_two_majorities_meet),
        cmocka_unit_test(who_has_lost_what_it_had_does_not_count),
        cmocka_unit_test(who_was_only_away_counts),
        cmocka_unit_test(the_majority_of_each_earlier_set_is_heard),
        cmocka_unit_test(who_is_gone_for_good_is_missing_from_its_set),
        cmocka_unit_test(of_all_owners_one_that_missed_nothing_knows),
        cmocka_unit_test(so_it_is_of_each_earlier_set),
        cmocka_unit_test(who_has_lost_something_says_so),
        cmocka_unit_test(a_list_misses_fewer_than_a_majority),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
