#include "hrw/hrw.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <cmocka.h>

#include "common/jsonx.h"
#include "common/rng.h"

/* hrw/vectors.json, which tests/reference/hrwref.py makes. */
static const char *vectors_path;

static int load_vectors(void **state)
{
    json_error_t why;
    *state = json_load_file(vectors_path, 0, &why);
    if (*state == NULL)
        fail_msg("%s: %s", vectors_path, why.text);
    return 0;
}

static int drop_vectors(void **state)
{
    json_decref(*state);
    return 0;
}

static json_t *vectors(void **state, const char *section)
{
    json_t *rows = json_object_get(*state, section);
    assert_true(json_array_size(rows) > 0);
    return rows;
}

static uint64_t hex(json_t *row, const char *field)
{
    const char *text = json_string_value(json_object_get(row, field));
    assert_non_null(text);
    assert_int_equal(strlen(text), 16);
    return strtoull(text, NULL, 16);
}

static void logarithms_of_the_vectors(void **state)
{
    size_t i;
    json_t *row;
    json_array_foreach(vectors(state, "neglog2"), i, row)
        assert_true(hrw_neglog2(hex(row, "h")) == hex(row, "value"));
}

static void seeds_of_the_vectors(void **state)
{
    size_t i;
    json_t *row;
    json_array_foreach(vectors(state, "seeds"), i, row)
    {
        const char *id = json_string_value(json_object_get(row, "id"));
        assert_true(hrw_seed(id) == hex(row, "seed"));
    }
}

static void keys_of_the_vectors(void **state)
{
    size_t i;
    json_t *row;
    json_array_foreach(vectors(state, "keys"), i, row)
    {
        json_t *name = json_object_get(row, "name");
        uint64_t key =
            hrw_key(hex(row, "scope"), json_string_value(name), json_string_length(name));
        assert_true(key == hex(row, "key"));
    }
}

enum { NODES_MAX = 64 };

static size_t nodes_of(json_t *list, struct hrw_node nodes[static NODES_MAX])
{
    size_t i;
    json_t *pair;
    assert_in_range(json_array_size(list), 1, NODES_MAX);
    json_array_foreach(list, i, pair)
    {
        nodes[i].seed = hrw_seed(json_string_value(json_array_get(pair, 0)));
        nodes[i].weight = (uint32_t)json_integer_value(json_array_get(pair, 1));
    }
    return json_array_size(list);
}

static void check_rank(uint64_t key, const struct hrw_node *nodes, size_t count, json_t *want)
{
    size_t got[NODES_MAX];
    size_t ranked = json_array_size(want);
    assert_int_equal(hrw_rank(key, nodes, count, count, got), ranked);
    for (size_t i = 0; i < ranked; i++)
        assert_int_equal(got[i], json_integer_value(json_array_get(want, i)));
    assert_int_equal(hrw_best(key, nodes, count), ranked > 0 ? got[0] : SIZE_MAX);
}

static void ranks_of_the_vectors(void **state)
{
    size_t i;
    json_t *row;
    json_array_foreach(vectors(state, "ranks"), i, row)
    {
        struct hrw_node nodes[NODES_MAX];
        size_t count = nodes_of(json_object_get(row, "nodes"), nodes);
        check_rank(hex(row, "key"), nodes, count, json_object_get(row, "rank"));
    }
}

/* The logarithm falls where the hash grows, and never is 0. */
static void assert_falls(uint64_t low, uint64_t high)
{
    if (hrw_neglog2(low) < hrw_neglog2(high) || hrw_neglog2(high) == 0)
        fail_msg("%016llx and %016llx", (unsigned long long)low, (unsigned long long)high);
}

static void the_logarithm_never_grows_with_the_hash(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 1);
    for (int bit = 0; bit < 64; bit++) {
        uint64_t power = 1ull << bit;
        for (uint64_t h = power > 150 ? power - 150 : 0; h < power + 150; h++)
            assert_falls(h, h + 1);
    }
    for (uint64_t h = UINT64_MAX - 3000; h != UINT64_MAX; h++)
        assert_falls(h, h + 1);
    for (int i = 0; i < 200000; i++) {
        uint64_t a = rng_next(&r);
        uint64_t b = rng_next(&r) >> rng_below(&r, 64);
        assert_falls(a < b ? a : b, a < b ? b : a);
        assert_falls(a - (a > 0), a);
    }
}

static void the_logarithm_is_the_logarithm(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 2);
    for (int i = 0; i < 100000; i++) {
        uint64_t h = rng_next(&r) >> rng_below(&r, 60);
        double got = ldexp((double)hrw_neglog2(h), -56);
        double want = 64 - log2((double)h + 0.5);
        if (fabs(got - want) > 1e-13)
            fail_msg("-log2 of %016llx: %.17g, not %.17g", (unsigned long long)h, got, want);
    }
}

/* The definition once more, without the shortcuts: every score is computed and compared. */

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static uint64_t undo_shift(uint64_t z, int bits)
{
    uint64_t x = z;
    for (int done = bits; done < 64; done += bits)
        x = z ^ (x >> bits);
    return x;
}

/* The inverse of mix, with the inverses of its factors modulo 2^64. */
static uint64_t unmix(uint64_t z)
{
    z = undo_shift(z, 31) * 0x319642b2d24d8ec3;
    z = undo_shift(z, 27) * 0x96de1b173f119089;
    return undo_shift(z, 30);
}

static bool plainly_beats(uint64_t key, const struct hrw_node *a, const struct hrw_node *b)
{
    uint64_t a_hash = mix(key ^ mix(a->seed));
    uint64_t b_hash = mix(key ^ mix(b->seed));
    unsigned __int128 a_score = (unsigned __int128)a->weight * hrw_neglog2(b_hash);
    unsigned __int128 b_score = (unsigned __int128)b->weight * hrw_neglog2(a_hash);
    return a_score != b_score ? a_score > b_score : a_hash > b_hash;
}

/* The place of node i: how many beat it, a tie going to the lower index. */
static size_t plain_place(uint64_t key, const struct hrw_node *nodes, size_t count, size_t i)
{
    size_t place = 0;
    for (size_t k = 0; k < count; k++) {
        bool wins = k < i ? !plainly_beats(key, &nodes[i], &nodes[k])
                          : plainly_beats(key, &nodes[k], &nodes[i]);
        place += k != i && nodes[k].weight != 0 && wins;
    }
    return place;
}

static void check_against_the_definition(uint64_t key, const struct hrw_node *nodes, size_t count)
{
    size_t got[NODES_MAX];
    size_t ranked = hrw_rank(key, nodes, count, count, got);
    size_t want_ranked = 0;
    for (size_t i = 0; i < count; i++)
        want_ranked += nodes[i].weight != 0;
    assert_int_equal(ranked, want_ranked);
    for (size_t i = 0; i < ranked; i++)
        assert_int_equal(plain_place(key, nodes, count, got[i]), i);
    assert_int_equal(hrw_best(key, nodes, count), ranked > 0 ? got[0] : SIZE_MAX);
}

/* Hashes where the shortcuts could go wrong: equal, next to each other, so close to 2^64 that
 * their logarithms are equal, or small. */
static uint64_t awkward_hash(struct rng *r)
{
    switch (rng_below(r, 5)) {
    case 0:
        return UINT64_MAX - rng_below(r, 600);
    case 1:
        return rng_below(r, 4);
    case 2:
        return (1ull << 63) - 2 + rng_below(r, 4);
    case 3:
        return ~(rng_next(r) >> rng_below(r, 64));
    default:
        return rng_next(r);
    }
}

static uint32_t awkward_weight(struct rng *r, bool equal)
{
    static const uint32_t weights[] = {1, 2, 3, 1000, 1001, UINT32_MAX - 1, UINT32_MAX, 0};
    return equal ? 5 : weights[rng_below(r, sizeof weights / sizeof weights[0])];
}

static void the_shortcuts_change_nothing(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 3);
    assert_true(unmix(mix(0x123456789abcdef)) == 0x123456789abcdef);
    for (int round = 0; round < 20000; round++) {
        struct hrw_node nodes[8];
        uint64_t key = rng_next(&r);
        size_t count = 1 + rng_below(&r, 8);
        bool equal = round % 2;
        for (size_t i = 0; i < count; i++) {
            uint64_t hash = awkward_hash(&r);
            nodes[i].seed = unmix(key ^ unmix(hash));
            nodes[i].weight = awkward_weight(&r, equal);
            assert_true(mix(key ^ mix(nodes[i].seed)) == hash);
        }
        check_against_the_definition(key, nodes, count);
    }
}

static void nobody_is_best_of_nobody(void **state)
{
    (void)state;
    const struct hrw_node zero[2] = {{1, 0}, {2, 0}};
    size_t out[2] = {77, 77};
    assert_true(hrw_best(5, NULL, 0) == SIZE_MAX);
    assert_true(hrw_best(5, zero, 2) == SIZE_MAX);
    assert_int_equal(hrw_rank(5, zero, 2, 2, out), 0);
    assert_int_equal(hrw_rank(5, NULL, 0, 2, out), 0);
    const struct hrw_node one = {1, 1};
    assert_int_equal(hrw_rank(5, &one, 1, 0, out), 0);
    assert_int_equal(out[0], 77);
}

/* Statistics over many keys; all of it is seeded, so that a bound that holds once holds always. */

static void make_nodes(struct hrw_node *nodes, size_t count, const uint32_t *weights)
{
    for (size_t i = 0; i < count; i++) {
        char id[32];
        snprintf(id, sizeof id, "t%zu", i + 1);
        nodes[i] = (struct hrw_node){hrw_seed(id), weights != NULL ? weights[i] : 100};
    }
}

static uint64_t numbered_key(int i)
{
    char name[64];
    int len = snprintf(name, sizeof name, "train/shard-%07d.tar", i);
    return hrw_key(1, name, (size_t)len);
}

/* Pearson's statistic of the counts against the shares; its 99.9 % quantile is about
 * dof + 3.09 sqrt(2 dof) + 6 for the few degrees of freedom here. */
static void assert_balanced(const int *counts, const double *shares, size_t cells, double total)
{
    double chi2 = 0;
    for (size_t i = 0; i < cells; i++) {
        double expected = total * shares[i];
        chi2 += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    double dof = (double)cells - 1;
    double bound = dof + 3.09 * sqrt(2 * dof) + 6;
    if (chi2 > bound)
        fail_msg("chi-square %.1f exceeds %.1f", chi2, bound);
}

static void check_balance(size_t count, const uint32_t *weights)
{
    enum { KEYS = 1000000 };
    struct hrw_node nodes[NODES_MAX];
    int counts[NODES_MAX] = {0};
    double shares[NODES_MAX];
    double sum = 0;
    make_nodes(nodes, count, weights);
    for (size_t i = 0; i < count; i++)
        sum += nodes[i].weight;
    for (size_t i = 0; i < count; i++)
        shares[i] = nodes[i].weight / sum;
    for (int i = 0; i < KEYS; i++)
        counts[hrw_best(numbered_key(i), nodes, count)]++;
    assert_balanced(counts, shares, count, KEYS);
}

static void equal_nodes_get_equal_shares(void **state)
{
    (void)state;
    check_balance(10, NULL);
    check_balance(3, NULL);
}

static void unequal_nodes_get_their_shares(void **state)
{
    (void)state;
    static const uint32_t disks[] = {3726, 3726, 7452, 14904, 16384};
    static const uint32_t extreme[] = {1, 10, 100, 1000, 10000, 1};
    check_balance(5, disks);
    check_balance(6, extreme);
}

/* The second copy of what node A owns is spread over the others as if A were not there. */
static void second_copies_are_spread_evenly(void **state)
{
    (void)state;
    enum { KEYS = 500000, COUNT = 5 };
    struct hrw_node nodes[COUNT];
    int counts[COUNT * (COUNT - 1)] = {0};
    double shares[COUNT * (COUNT - 1)];
    make_nodes(nodes, COUNT, NULL);
    for (int i = 0; i < KEYS; i++) {
        size_t top[2];
        assert_int_equal(hrw_rank(numbered_key(i), nodes, COUNT, 2, top), 2);
        counts[top[0] * (COUNT - 1) + top[1] - (top[1] > top[0])]++;
    }
    for (size_t i = 0; i < COUNT * (COUNT - 1); i++)
        shares[i] = 1.0 / (COUNT * (COUNT - 1));
    assert_balanced(counts, shares, COUNT * (COUNT - 1), KEYS);
}

/* Names of which many differ in one bit only. */
static void similar_names_are_spread_as_well(void **state)
{
    (void)state;
    enum { KEYS = 1 << 18 };
    struct hrw_node nodes[8];
    int counts[8] = {0};
    double shares[8];
    make_nodes(nodes, 8, NULL);
    for (uint32_t i = 0; i < KEYS; i++)
        counts[hrw_best(hrw_key(0, &i, sizeof i), nodes, 8)]++;
    for (size_t i = 0; i < 8; i++)
        shares[i] = 1.0 / 8;
    assert_balanced(counts, shares, 8, KEYS);
}

enum { MOVING_KEYS = 200000 };

/* From one cluster to the next, only node `at` may gain (or lose); the fraction that moves is
 * within five standard deviations of the one expected. */
static void check_moves(const struct hrw_node *before, size_t before_count,
                        const struct hrw_node *after, size_t after_count, size_t at, bool gains,
                        double fraction)
{
    int moved = 0;
    for (int i = 0; i < MOVING_KEYS; i++) {
        uint64_t key = numbered_key(i);
        size_t from = hrw_best(key, before, before_count);
        size_t to = hrw_best(key, after, after_count);
        if (from == to)
            continue;
        assert_int_equal(gains ? to : from, at);
        moved++;
    }
    double expected = fraction * MOVING_KEYS;
    double deviation = sqrt(expected * (1 - fraction));
    if (fabs(moved - expected) > 5 * deviation)
        fail_msg("%d of %d keys moved, expected %.0f", moved, MOVING_KEYS, expected);
}

static void a_node_that_joins_only_gains_and_one_that_leaves_only_loses(void **state)
{
    (void)state;
    static const uint32_t weights[] = {100, 250, 100, 400, 150};
    const uint32_t *const both[] = {NULL, weights};
    const double fractions[] = {1.0 / 5, 150.0 / 1000};
    for (int i = 0; i < 2; i++) {
        struct hrw_node nodes[5];
        make_nodes(nodes, 5, both[i]);
        check_moves(nodes, 4, nodes, 5, 4, true, fractions[i]);
        check_moves(nodes, 5, nodes, 4, 4, false, fractions[i]);
    }
}

static void a_changed_weight_moves_keys_of_that_node_only(void **state)
{
    (void)state;
    static const uint32_t weights[] = {100, 250, 100, 400, 150};
    struct hrw_node before[5];
    struct hrw_node after[5];
    make_nodes(before, 5, weights);
    make_nodes(after, 5, weights);
    after[1].weight = 500;
    check_moves(before, 5, after, 5, 1, true, 500.0 / 1250 - 250.0 / 1000);
    check_moves(after, 5, before, 5, 1, false, 500.0 / 1250 - 250.0 / 1000);
    after[1].weight = 0;
    check_moves(before, 5, after, 5, 1, false, 250.0 / 1000);
    check_moves(after, 5, before, 5, 1, true, 250.0 / 1000);
}

static void weights_count_by_their_ratio(void **state)
{
    (void)state;
    struct hrw_node small[5];
    struct hrw_node great[5];
    static const uint32_t weights[] = {1, 2, 3, 4, 5};
    make_nodes(small, 5, weights);
    make_nodes(great, 5, weights);
    for (int i = 0; i < 5; i++)
        great[i].weight *= 800000000;
    for (int i = 0; i < 100000; i++) {
        uint64_t key = numbered_key(i);
        assert_int_equal(hrw_best(key, small, 5), hrw_best(key, great, 5));
    }
}

/* Without node `gone`, the others stand in the same order. */
static void check_order_without(uint64_t key, struct hrw_node *nodes, size_t count, size_t gone)
{
    size_t with[NODES_MAX];
    size_t without[NODES_MAX];
    assert_int_equal(hrw_rank(key, nodes, count, count, with), count);
    uint32_t weight = nodes[gone].weight;
    nodes[gone].weight = 0;
    assert_int_equal(hrw_rank(key, nodes, count, count, without), count - 1);
    nodes[gone].weight = weight;
    for (size_t i = 0, k = 0; i < count; i++) {
        if (with[i] != gone)
            assert_int_equal(with[i], without[k++]);
    }
}

static void copies_keep_their_order(void **state)
{
    (void)state;
    static const uint32_t weights[] = {100, 250, 100, 400, 150, 100, 7};
    struct hrw_node nodes[7];
    make_nodes(nodes, 7, weights);
    for (int i = 0; i < 5000; i++) {
        uint64_t key = numbered_key(i);
        size_t all[7];
        assert_int_equal(hrw_rank(key, nodes, 7, 7, all), 7);
        for (size_t n = 0; n < 7; n++) {
            size_t some[7];
            assert_int_equal(hrw_rank(key, nodes, 7, n, some), n);
            assert_memory_equal(some, all, n * sizeof all[0]);
            check_order_without(key, nodes, 7, n);
        }
    }
}

static void the_order_of_the_list_does_not_matter(void **state)
{
    (void)state;
    static const uint32_t weights[] = {100, 250, 100, 400, 150};
    struct hrw_node nodes[5];
    struct hrw_node turned[5];
    make_nodes(nodes, 5, weights);
    for (int i = 0; i < 5; i++)
        turned[i] = nodes[4 - i];
    for (int i = 0; i < 100000; i++) {
        uint64_t key = numbered_key(i);
        assert_int_equal(hrw_best(key, nodes, 5), 4 - hrw_best(key, turned, 5));
    }
}

static void scopes_place_the_same_name_apart(void **state)
{
    (void)state;
    struct hrw_node nodes[10];
    make_nodes(nodes, 10, NULL);
    int same = 0;
    for (int i = 0; i < 10000; i++) {
        char name[32];
        size_t len = (size_t)snprintf(name, sizeof name, "o%d", i);
        same += hrw_best(hrw_key(1, name, len), nodes, 10) ==
                hrw_best(hrw_key(2, name, len), nodes, 10);
    }
    assert_in_range(same, 850, 1150); /* a tenth, within five deviations */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(logarithms_of_the_vectors, load_vectors, drop_vectors),
        cmocka_unit_test_setup_teardown(seeds_of_the_vectors, load_vectors, drop_vectors),
        cmocka_unit_test_setup_teardown(keys_of_the_vectors, load_vectors, drop_vectors),
        cmocka_unit_test_setup_teardown(ranks_of_the_vectors, load_vectors, drop_vectors),
        cmocka_unit_test(the_logarithm_never_grows_with_the_hash),
        cmocka_unit_test(the_logarithm_is_the_logarithm),
        cmocka_unit_test(the_shortcuts_change_nothing),
        cmocka_unit_test(nobody_is_best_of_nobody),
        cmocka_unit_test(equal_nodes_get_equal_shares),
        cmocka_unit_test(unequal_nodes_get_their_shares),
        cmocka_unit_test(second_copies_are_spread_evenly),
        cmocka_unit_test(similar_names_are_spread_as_well),
        cmocka_unit_test(a_node_that_joins_only_gains_and_one_that_leaves_only_loses),
        cmocka_unit_test(a_changed_weight_moves_keys_of_that_node_only),
        cmocka_unit_test(weights_count_by_their_ratio),
        cmocka_unit_test(copies_keep_their_order),
        cmocka_unit_test(the_order_of_the_list_does_not_matter),
        cmocka_unit_test(scopes_place_the_same_name_apart),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: hrw_test hrw/vectors.json\n");
        return 2;
    }
    vectors_path = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
