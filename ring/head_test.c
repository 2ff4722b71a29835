/* The head's JSON, its indexes, and cuts of exactly the wanted size. */
#include "ring/head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/rng.h"

static const struct ring_have have[] = {
    {"t1.a", 0, 10}, {"t1.b", 5, 6}, {"t2.a", 100, 130}, {"t3.a", 7, 8}};

static void test_there_and_back(void **state)
{
    (void)state;
    _cleanup_ring_head_ struct ring_head none = {.generation = 0}, one, two, back;
    _cleanup_buf_ struct buf text = BUF_INIT, again = BUF_INIT;
    const struct ring_have later[] = {{"t2.a", 120, 140}};
    uint64_t ordinal, taken;
    const char *lane;
    ring_head_seal(&none, have, 4, 20, 1, 11, &one);
    ring_head_seal(&one, later, 1, 20, 1, 12, &two);
    ring_head_print(&two, &text);
    assert_int_equal(ring_head_parse(text.data, text.len, &back, NULL), 0);
    ring_head_print(&back, &again);
    assert_string_equal(text.data, again.data);
    assert_int_equal(back.samples_total, 40);
    assert_int_equal(back.generations_count, 2);
    assert_true(ring_head_taken(&back, "t2.a", &taken));
    assert_int_equal(taken, 140);
    assert_false(ring_head_taken(&back, "t9.a", &taken));
    const struct ring_generation *g = ring_head_generation(&back, 2);
    assert_int_equal(g->samples, 20);
    assert_true(ring_generation_find(g, 19, &lane, &ordinal));
    assert_string_equal(lane, "t2.a");
    assert_int_equal(ordinal, 139);
    assert_false(ring_generation_find(g, 20, &lane, &ordinal));
    assert_null(ring_head_generation(&back, 3));
    assert_int_equal(ring_head_release(&back, "t2.a"), 100);
    assert_int_equal(ring_head_release(&back, "t9.a"), 0);
}

static void test_only_so_many_are_kept(void **state)
{
    (void)state;
    _cleanup_ring_head_ struct ring_head h = {.generation = 0};
    for (uint64_t i = 0; i < 9; i++) {
        struct ring_head next;
        const struct ring_have more = {"t1.a", 2 * i, 2 * i + 2};
        ring_head_seal(&h, &more, 1, 2, 2, i, &next);
        ring_head_done(&h);
        h = next;
    }
    assert_int_equal(h.generations_count, 3);
    assert_int_equal(h.generations[0].number, 7);
    assert_int_equal(ring_head_release(&h, "t1.a"), 12);
    _cleanup_ring_head_ struct ring_head cleared;
    ring_head_clear(&h, have, 4, &cleared);
    assert_int_equal(cleared.generation, 9);
    assert_int_equal(cleared.generations_count, 0);
    assert_int_equal(ring_head_release(&cleared, "t2.a"), 130);
    ring_head_forget(&cleared, "t2.a");
    ring_head_forget(&cleared, "t2.a");
    assert_int_equal(cleared.lanes_count, 3);
}

static void test_a_cut_is_exact(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, 7);
    for (int round = 0; round < 20000; round++) {
        struct ring_have some[12];
        uint64_t take[12], sum = 0, given = 0;
        const size_t count = 1 + rng_below(&rng, 12);
        const uint64_t most = round % 3 == 0 ? 2 : round % 3 == 1 ? 100 : UINT64_MAX / 16;
        for (size_t i = 0; i < count; i++) {
            some[i] = (struct ring_have){.from = 3, .to = 4 + rng_below(&rng, most)};
            sum += some[i].to - 3;
        }
        const uint64_t want = 1 + rng_below(&rng, sum);
        ring_cut_take(some, count, want, take);
        for (size_t i = 0; i < count; i++) {
            assert_true(take[i] <= some[i].to - 3);
            const unsigned __int128 share = (unsigned __int128)want * (some[i].to - 3);
            assert_true(take[i] >= (uint64_t)(share / sum));
            assert_true(take[i] <= (uint64_t)(share / sum) + 1);
            given += take[i];
        }
        assert_int_equal(given, want);
    }
}

static void test_a_cut_goes_around_holes(void **state)
{
    (void)state;
    const struct ring_have holey = {.lane = "t1.a",
                                    .from = 10,
                                    .to = 30,
                                    .holes_count = 3,
                                    .holes = {{10, 12}, {15, 16}, {20, 25}}};
    const struct ring_head none = {.generation = 0};
    _cleanup_ring_head_ struct ring_head h, again;
    _cleanup_buf_ struct buf text = BUF_INIT;
    uint64_t taken, number, count;
    assert_int_equal(ring_have_samples(&holey), 12);
    ring_head_seal(&none, &holey, 1, 9, 1, 1, &h); /* 12-14, 16-19, 25-26 */
    assert_int_equal(h.generations[0].count, 3);
    assert_int_equal(h.generations[0].cuts[0].from, 12);
    assert_int_equal(h.generations[0].cuts[1].to, 20);
    assert_int_equal(h.generations[0].cuts[2].to, 27);
    assert_true(ring_head_taken(&h, "t1.a", &taken));
    assert_int_equal(taken, 27);
    assert_int_equal(ring_head_release(&h, "t1.a"), 12);
    assert_true(ring_head_has(&h, "t1.a", 17, &number, &count));
    assert_int_equal(count, 3);
    assert_false(ring_head_has(&h, "t1.a", 15, &number, &count));
    assert_false(ring_head_has(&h, "t1.b", 17, &number, &count));
    ring_head_print(&h, &text);
    assert_int_equal(ring_head_parse(text.data, text.len, &again, NULL), 0);
    assert_int_equal(again.generations[0].samples, 9);
}

static void test_what_is_no_head(void **state)
{
    (void)state;
#define G "{\"generation\":1,\"sealed_ms\":1,\"cuts\":"
#define HEAD(lanes, generations)                                           \
    "{\"format\":1,\"generation\":1,\"samples_total\":1,\"lanes\":[" lanes \
    "],\"generations\":[" generations "]}"
#define L "{\"lane\":\"t1.a\",\"taken\":5}"
    static const char *const wrong[] = {
        "",
        "[]",
        "{}",
        "{\"format\":1}",
        HEAD("{\"lane\":\"t1\",\"taken\":5}", ""),
        HEAD(L "," L, ""),
        HEAD("{\"lane\":\"t1.a\",\"taken\":-5}", ""),
        "{\"format\":1,\"generation\":1,\"samples_total\":1,\"consumed\":2,\"lanes\":[],"
        "\"generations\":[]}",
        HEAD("", G "[{\"lane\":\"t1.a\",\"from\":1,\"to\":2}]}"),
        HEAD(L, G "[{\"lane\":\"t1.a\",\"from\":1,\"to\":6}]}"),
        HEAD(L, G "[{\"lane\":\"t1.a\",\"from\":2,\"to\":2}]}"),
        HEAD(L, G "[]}"),
        HEAD(L, G "1}"),
    };
    struct ring_head h;
    struct error err;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(ring_head_parse(wrong[i], strlen(wrong[i]), &h, &err), E_CORRUPT);
    static const char later[] = "{\"format\":2}";
    assert_int_equal(ring_head_parse(later, strlen(later), &h, &err), E_UNSUPPORTED);
}

/* An earlier release has stored it. */
static void test_what_groups_have_done_is_consumed(void **state)
{
    (void)state;
    static const char old[] =
        "{\"format\":1,\"generation\":7,\"samples_total\":1,\"groups\":[{\"group\":\"a\",\"done\":"
        "6,"
        "\"lease_ms\":1},{\"group\":\"b\",\"done\":2,\"lease_ms\":1}],\"lanes\":[],"
        "\"generations\":[]}";
    _cleanup_ring_head_ struct ring_head h, again;
    _cleanup_buf_ struct buf text = BUF_INIT;
    assert_int_equal(ring_head_parse(old, strlen(old), &h, NULL), 0);
    assert_int_equal(h.consumed, 6);
    ring_head_leave_group(&h, "a");
    ring_head_print(&h, &text);
    assert_int_equal(ring_head_parse(text.data, text.len, &again, NULL), 0);
    assert_int_equal(again.consumed, 6);
}

static void test_nodes_of_lanes(void **state)
{
    (void)state;
    char node[RING_LANE_MAX];
    assert_true(ring_lane_node("a.b.c.0123", node));
    assert_string_equal(node, "a.b.c");
    assert_false(ring_lane_node("a", node));
    assert_false(ring_lane_node(".a", node));
    assert_false(ring_lane_node("a.", node));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_only_so_many_are_kept),
        cmocka_unit_test(test_a_cut_is_exact),
        cmocka_unit_test(test_what_is_no_head),
        cmocka_unit_test(test_nodes_of_lanes),
        cmocka_unit_test(test_a_cut_goes_around_holes),
        cmocka_unit_test(test_what_groups_have_done_is_consumed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
