/* What a keeper stores, waits for and forgets, one decision at a time.  ring_sim_test.c has
 * schedules. */
#include "ring/keeper.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void test_lanes_are_forgotten(void **state)
{
    (void)state;
    struct ring_keeper *k = ring_keeper_new();
    const struct ring_rules rules = {.cap = 2, .keep = 0, .fresh_ms = 10};
    struct ring_report r[2] = {{.lane = "t1.a", .count = 2, .closed = true}, {.lane = "t1.b"}};
    struct ring_head next;
    uint64_t taken;
    ring_keeper_load(k, NULL);
    ring_keeper_report(k, "t1", r, 2, 1);
    assert_true(ring_keeper_plan(k, &rules, RING_WHEN_FULL, 1, 1, &next));
    ring_keeper_stored(k, &next);
    r[0].first = 2;
    r[0].drained = true;
    r[1].count = 2;
    ring_keeper_report(k, "t1", r, 2, 2);
    assert_false(ring_keeper_answer(k, &r[0]).forget);
    for (int i = 0; i < 2; i++) {
        const uint64_t now = i == 0 ? 2 : 3 + RING_FORGET_MS;
        ring_keeper_report(k, "t1", r, 2, now);
        assert_true(ring_keeper_plan(k, &rules, RING_WHEN_FULL, now, 1, &next));
        ring_keeper_stored(k, &next);
        assert_true(ring_head_taken(ring_keeper_head(k), "t1.a", &taken) == (i == 0));
        r[1].count += 2;
    }
    assert_true(ring_keeper_answer(k, &r[0]).forget);
    ring_keeper_free(k);
}

/* A keeper that was deposed has a report of a lane that was drained since. */
static void test_a_keeper_that_comes_back(void **state)
{
    (void)state;
    struct ring_keeper *old = ring_keeper_new(), *k = ring_keeper_new();
    const struct ring_rules rules = {.cap = 2, .keep = 0, .fresh_ms = 180000};
    struct ring_report r[2] = {{.lane = "t1.a", .count = 2, .closed = true}, {.lane = "t1.b"}};
    struct ring_head next;
    ring_keeper_load(k, NULL);
    ring_keeper_report(k, "t1", r, 2, 1);
    assert_true(ring_keeper_plan(k, &rules, RING_WHEN_FULL, 1, 1, &next));
    ring_keeper_stored(k, &next);
    ring_keeper_report(old, "t1", r, 2, 1000); /* it is late */
    r[0].first = 2;
    r[0].drained = true;
    for (uint64_t now = 500; ring_keeper_lanes(k) == 2; now += 30000) {
        uint64_t taken;
        r[1].count += 2;
        ring_keeper_report(k, "t1", r, 2, now);
        assert_true(ring_keeper_plan(k, &rules, RING_WHEN_FULL, now, 1, &next));
        ring_keeper_stored(k, &next);
        if (ring_head_taken(ring_keeper_head(k), "t1.a", &taken))
            continue;
        ring_keeper_load(old, ring_keeper_head(k));
        assert_int_equal(ring_keeper_fill(old, &rules, now), 0);
        break;
    }
    ring_keeper_free(old);
    ring_keeper_free(k);
}

static void test_only_what_can_be_read_counts(void **state)
{
    (void)state;
    struct ring_keeper *k = ring_keeper_new();
    const struct ring_rules rules = {.cap = 3, .keep = 1, .fresh_ms = 10};
    const struct ring_report a = {.lane = "t1.a", .count = 2}, b = {.lane = "t2.a", .count = 2};
    struct ring_head next;
    ring_keeper_load(k, NULL);
    ring_keeper_report(k, "t1", &a, 1, 1);
    ring_keeper_report(k, "t2", &b, 1, 20);
    assert_int_equal(ring_keeper_fill(k, &rules, 20), 2);
    assert_false(ring_keeper_plan(k, &rules, RING_WHEN_FULL, 20, 1, &next));
    ring_keeper_report(k, "t1", &a, 1, 21);
    assert_int_equal(ring_keeper_fill(k, &rules, 21), 4);
    ring_keeper_report(k, "t1", NULL, 0, 22); /* its disk is gone */
    assert_int_equal(ring_keeper_fill(k, &rules, 22), 2);
    assert_true(ring_keeper_plan(k, &rules, RING_SWAP, 22, 1, &next));
    assert_int_equal(next.generations[0].samples, 2);
    ring_head_done(&next);
    assert_true(ring_keeper_plan(k, &rules, RING_CLEAR, 22, 1, &next));
    assert_int_equal(ring_head_release(&next, "t1.a"), 2);
    ring_head_done(&next);
    ring_keeper_free(k);
}

static enum ring_group_reply call(struct ring_keeper *k, const struct ring_group_call *c,
                                  uint64_t now_ms)
{
    struct ring_head next;
    const enum ring_group_reply reply = ring_keeper_group(k, c, now_ms, &next);
    if (reply == RING_GROUP_STORES)
        ring_keeper_stored(k, &next);
    return reply;
}

/* A ring without swaps has no other time to forget them. */
static void test_silent_groups_make_room(void **state)
{
    (void)state;
    struct ring_keeper *k = ring_keeper_new();
    struct ring_group_call c = {.lease_ms = 100};
    ring_keeper_load(k, NULL);
    for (int i = 0; i < RING_GROUPS_MAX; i++) {
        snprintf(c.name, sizeof c.name, "g%d", i);
        assert_int_equal(call(k, &c, 1), RING_GROUP_STORES);
    }
    snprintf(c.name, sizeof c.name, "late");
    assert_int_equal(call(k, &c, 101), RING_GROUP_MANY);
    assert_int_equal(call(k, &c, 202), RING_GROUP_STORES);
    assert_int_equal(ring_keeper_head(k)->groups_count, 1);
    ring_keeper_free(k);
}

/* With `consumed`: also if no group is there yet, or any more. */
static void test_a_generation_that_nobody_has_read_stays(void **state)
{
    (void)state;
    struct ring_keeper *k = ring_keeper_new();
    const struct ring_rules rules = {.cap = 2, .keep = 1, .fresh_ms = 1000, .consumed = true};
    struct ring_group_call c = {.name = "a", .lease_ms = 100};
    const struct ring_report r = {.lane = "t1.a", .count = 9};
    struct ring_head next;
    ring_keeper_load(k, NULL);
    ring_keeper_report(k, "t1", &r, 1, 1);
    assert_true(ring_keeper_plan(k, &rules, RING_WHEN_FULL, 1, 1, &next)); /* the first one */
    ring_keeper_stored(k, &next);
    assert_false(ring_keeper_plan(k, &rules, RING_WHEN_FULL, 2, 1, &next));
    assert_int_equal(call(k, &c, 2), RING_GROUP_STORES);
    assert_false(
        ring_keeper_plan(k, &rules, RING_WHEN_FULL, 500, 1, &next)); /* no lease any more */
    c.done = 1;
    assert_int_equal(call(k, &c, 500), RING_GROUP_STORES);
    c.leaves = true;
    assert_int_equal(call(k, &c, 500), RING_GROUP_STORES);
    assert_true(ring_keeper_plan(k, &rules, RING_WHEN_FULL, 501, 1, &next));
    ring_keeper_stored(k, &next);
    assert_int_equal(ring_keeper_head(k)->generation, 2);
    assert_false(ring_keeper_plan(k, &rules, RING_WHEN_FULL, 502, 1, &next));
    assert_true(ring_keeper_plan(k, &rules, RING_SWAP, 502, 1, &next)); /* a client asks for it */
    ring_keeper_stored(k, &next);
    assert_true(ring_keeper_plan(k, &rules, RING_CLEAR, 503, 1, &next));
    ring_keeper_stored(k, &next);
    ring_keeper_free(k);
}

static uint64_t swaps_of(unsigned keep, const struct ring_group_call *group, bool consumed)
{
    struct ring_keeper *k = ring_keeper_new();
    const struct ring_rules rules = {.cap = 2, .keep = keep, .fresh_ms = 10, .consumed = consumed};
    const struct ring_report r[2] = {{.lane = "t1.a", .count = 31}, {.lane = "t1.b", .count = 9}};
    struct ring_head next;
    ring_keeper_load(k, NULL);
    if (group != NULL)
        assert_int_equal(call(k, group, 1), RING_GROUP_STORES);
    ring_keeper_report(k, "t1", r, 2, 1);
    assert_true(ring_keeper_plan(k, &rules, RING_WHEN_FULL, 1, 1, &next));
    const uint64_t swaps = next.generation;
    assert_int_equal(next.generations_count, swaps);
    for (size_t i = 0; i < next.generations_count; i++)
        assert_int_equal(next.generations[i].samples, 2);
    assert_int_equal(next.samples_total, 2 * swaps);
    ring_head_done(&next);
    assert_true(ring_keeper_plan(k, &rules, RING_SWAP, 1, 1, &next));
    assert_int_equal(next.generation, 1); /* what a client asks for is one */
    ring_head_done(&next);
    ring_keeper_free(k);
    return swaps;
}

/* Half of what is kept: each is in this head and in the next one. */
static void test_a_head_adds_several_generations(void **state)
{
    (void)state;
    const struct ring_group_call group = {.name = "a", .lease_ms = 100};
    assert_int_equal(swaps_of(0, NULL, false), 1);
    assert_int_equal(swaps_of(1, NULL, false), 1);
    assert_int_equal(swaps_of(2, NULL, false), 1);
    assert_int_equal(swaps_of(3, NULL, false), 2);
    assert_int_equal(swaps_of(16, NULL, false), 8);
    assert_int_equal(swaps_of(16, &group, false), 1); /* the group has not acknowledged it */
    assert_int_equal(swaps_of(16, NULL, true), 1);
}

/* The reply to the first call was lost: the second one says the same. */
static void test_a_repeated_call_says_that_it_joins(void **state)
{
    (void)state;
    struct ring_keeper *k = ring_keeper_new();
    const struct ring_head head = {.generation = 5};
    struct ring_group_call c = {.name = "a", .done = 2, .lease_ms = 100};
    ring_keeper_load(k, &head);
    assert_true(ring_keeper_joins(k, &c));
    assert_int_equal(call(k, &c, 1), RING_GROUP_STORES);
    assert_true(ring_keeper_joins(k, &c));
    c.done = 4;
    assert_false(ring_keeper_joins(k, &c)); /* nothing but the current one is behind it */
    assert_int_equal(call(k, &c, 2), RING_GROUP_STORES);
    c.done = 0; /* a late call */
    assert_false(ring_keeper_joins(k, &c));
    c.leaves = true;
    assert_int_equal(call(k, &c, 3), RING_GROUP_STORES);
    assert_false(ring_keeper_joins(k, &c));
    ring_keeper_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lanes_are_forgotten),
        cmocka_unit_test(test_a_keeper_that_comes_back),
        cmocka_unit_test(test_only_what_can_be_read_counts),
        cmocka_unit_test(test_silent_groups_make_room),
        cmocka_unit_test(test_a_generation_that_nobody_has_read_stays),
        cmocka_unit_test(test_a_repeated_call_says_that_it_joins),
        cmocka_unit_test(test_a_head_adds_several_generations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
