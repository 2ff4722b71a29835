#include "cache/policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/rng.h"

#define HOUR 3600000

static struct piece_id id_of(uint64_t n)
{
    return (struct piece_id){.entity = {n * 0x9e3779b97f4a7c15ull, n}};
}

static struct policy *make(uint64_t limit)
{
    const struct policy_options options = {
        .limit_bytes = limit, .idle_ms = HOUR, .proof_ms = HOUR, .seed = 1};
    return policy_new(&options);
}

/* As a tier does it.  True: a hit. */
static bool read_piece(struct policy *p, uint64_t n, uint64_t set, size_t bytes, uint64_t now_ms)
{
    struct policy_piece victim;
    const struct piece_id id = id_of(n);
    if (policy_hit(p, &id, now_ms))
        return true;
    if (!policy_admits(p, &id, bytes))
        return false;
    while (policy_bytes(p) + bytes > policy_limit(p) && policy_evict(p, now_ms, &victim))
        ;
    policy_add(p, &id, set, bytes, now_ms);
    return false;
}

static void what_is_read_once_leaves_first(void **state)
{
    (void)state;
    struct policy *p = make(100);
    for (unsigned round = 0; round < 3; round++) {
        for (uint64_t n = 0; n < 50; n++)
            read_piece(p, n, 1, 1, 0);
    }
    for (uint64_t n = 1000; n < 2000; n++) /* a scan */
        read_piece(p, n, 1, 1, 0);
    for (uint64_t n = 0; n < 50; n++)
        assert_true(policy_has(p, &(struct piece_id){.entity = {n * 0x9e3779b97f4a7c15ull, n}}));
    assert_true(policy_bytes(p) <= 100);
    policy_free(p);
}

static void idle_sets_leave_first_and_whole(void **state)
{
    (void)state;
    struct policy_piece v;
    struct policy *p = make(1000);
    for (uint64_t n = 0; n < 30; n++) { /* three sets, read at 0, 1, 2 minutes; many times */
        for (unsigned i = 0; i < 3; i++)
            read_piece(p, n, n / 10, 1, n / 10 * 60000);
    }
    uint64_t now = HOUR + 60000;
    for (unsigned i = 0; i < 10; i++) {
        assert_true(policy_evict(p, now, &v));
        assert_int_equal(v.set, 0);
    }
    for (unsigned i = 0; i < 10; i++) {
        assert_true(policy_evict(p, now, &v));
        assert_int_equal(v.set, 1);
    }
    assert_int_equal(policy_count(p), 10); /* the third is not idle: its turn is by use */
    assert_true(policy_evict(p, now, &v));
    assert_int_equal(v.set, 2);
    policy_free(p);
}

static void an_empty_cache_has_no_victim(void **state)
{
    (void)state;
    struct policy_piece v;
    struct policy *p = make(0);
    const struct piece_id id = id_of(3);
    assert_false(policy_evict(p, 0, &v));
    assert_false(policy_hit(p, &id, 0));
    assert_false(policy_remove(p, &id));
    policy_add(p, &id, 1, 5, 0);
    assert_true(policy_remove(p, &id));
    assert_int_equal(policy_bytes(p), 0);
    policy_free(p);
}

static void a_whole_stays_longer_than_what_is_read_once(void **state)
{
    (void)state;
    struct policy *p = make(100);
    const struct piece_id id = {.entity = {7, 7}, .index = PIECE_WHOLE};
    policy_prove(p, &id, 0); /* it is not there */
    policy_join(p, &id, 1, 20, 0);
    assert_false(policy_is_proved(p, &id, 0));
    policy_prove(p, &id, 0);
    for (uint64_t n = 1000; n < 2000; n++)
        read_piece(p, n, 1, 1, 0);
    assert_true(policy_is_proved(p, &id, HOUR));
    assert_false(policy_is_proved(p, &id, HOUR + 1));
    policy_doubt(p, &id);
    assert_false(policy_is_proved(p, &id, 0));
    policy_prove(p, &id, 0);
    policy_add(p, &id, 1, 20, 0); /* another one of this name */
    assert_false(policy_is_proved(p, &id, 0));
    policy_free(p);
}

static void what_is_held_stays(void **state)
{
    (void)state;
    struct policy_piece v;
    struct policy *p = make(100);
    const struct piece_id one = id_of(1), two = id_of(2), other = id_of(3);
    policy_add(p, &one, 1, 10, 0);
    policy_add(p, &two, 2, 10, 0);
    policy_hold(p, &one, -1); /* held while it was elsewhere */
    policy_hold(p, &one, 1);
    policy_hold(p, &one, 1);
    policy_hold(p, &other, 1); /* it is not there */
    policy_hold(p, &other, -1);
    assert_true(policy_evict(p, 2 * HOUR, &v)); /* both sets are idle */
    assert_true(piece_id_equal(&v.id, &two));
    assert_false(policy_evict(p, 4 * HOUR, &v));
    policy_hold(p, &one, -1);
    assert_false(policy_evict(p, 4 * HOUR, &v));
    policy_hold(p, &one, -1);
    assert_true(policy_evict(p, 4 * HOUR, &v));
    policy_join(p, &one, 1, 10, 0);
    policy_hold(p, &one, 1);
    policy_add(p, &two, 1, 10, 0);
    assert_true(policy_remove(p, &one)); /* it was damaged */
    assert_true(policy_evict(p, 9 * HOUR, &v));
    policy_join(p, &one, 1, 10, 0);
    assert_false(policy_evict(p, 9 * HOUR, &v)); /* the name is held */
    policy_hold(p, &one, -1);
    policy_hold(p, &two, 1); /* beforehand */
    policy_add(p, &two, 2, 10, 0);
    assert_true(policy_evict(p, 29 * HOUR, &v));
    assert_true(piece_id_equal(&v.id, &one));
    assert_false(policy_evict(p, 29 * HOUR, &v));
    policy_free(p);
}

static void more_bytes_than_32_bits_count(void **state)
{
    (void)state;
    struct policy_piece v;
    struct policy *p = make(1ull << 40);
    const struct piece_id id = {.entity = {7, 7}, .index = PIECE_WHOLE};
    policy_join(p, &id, 1, 5ull << 30, 0);
    assert_int_equal(policy_bytes(p), 5ull << 30);
    assert_true(policy_evict(p, 0, &v));
    assert_int_equal(v.bytes, 5ull << 30);
    assert_int_equal(policy_bytes(p), 0);
    policy_free(p);
}

/* Whatever comes, sums agree with what is there. */
static void sums_agree(void **state)
{
    (void)state;
    struct rng r;
    static uint32_t bytes_of[5000];
    struct policy *p = make(100000);
    rng_seed(&r, 7);
    for (unsigned i = 0; i < 200000; i++) {
        uint64_t n = rng_below(&r, 5000), now = i;
        const struct piece_id id = id_of(n);
        struct policy_piece v;
        switch (rng_below(&r, 4)) {
        case 0:
            bytes_of[n] = (uint32_t)rng_below(&r, 400) + 1;
            policy_add(p, &id, n % 17, bytes_of[n], now);
            break;
        case 1:
            assert_int_equal(policy_remove(p, &id), bytes_of[n] != 0);
            bytes_of[n] = 0;
            break;
        case 2:
            assert_int_equal(policy_hit(p, &id, now), bytes_of[n] != 0);
            break;
        default:
            if (policy_evict(p, now, &v)) {
                assert_int_equal(bytes_of[v.id.entity[1]], v.bytes);
                assert_int_equal(v.id.entity[1] % 17, v.set);
                bytes_of[v.id.entity[1]] = 0;
            }
        }
    }
    uint64_t bytes = 0, count = 0;
    for (unsigned n = 0; n < 5000; n++) {
        bytes += bytes_of[n];
        count += bytes_of[n] != 0;
    }
    assert_int_equal(policy_bytes(p), bytes);
    assert_int_equal(policy_count(p), count);
    policy_free(p);
}

/* Hits of one epoch: each of the set's pieces once, in an order of its own. */
static double epoch(struct policy *p, struct rng *r, uint64_t first, uint64_t count)
{
    static uint64_t order[20000];
    uint64_t hits = 0;
    for (uint64_t i = 0; i < count; i++)
        order[i] = first + i;
    for (uint64_t i = count - 1; i > 0; i--) {
        uint64_t j = rng_below(r, i + 1), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    for (uint64_t i = 0; i < count; i++)
        hits += read_piece(p, order[i], first, 1, 0);
    return (double)hits / (double)count;
}

static void epochs_over_a_set_that_fits_hit(void **state)
{
    (void)state;
    struct rng r;
    struct policy *p = make(4000);
    rng_seed(&r, 1);
    epoch(p, &r, 0, 4000);
    for (unsigned i = 0; i < 19; i++)
        assert_true(epoch(p, &r, 0, 4000) == 1);
    policy_free(p);
}

static void epochs_over_more_than_fits_hit_nearly_the_share(void **state)
{
    (void)state;
    static const uint64_t counts[] = {4400, 5000, 6000, 8000, 12000, 20000};
    struct rng r;
    rng_seed(&r, 1);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        double hits = 0;
        struct policy *p = make(4000);
        for (unsigned e = 0; e < 20; e++) /* at the begin it is learnt */
            hits += e < 10 ? epoch(p, &r, 0, counts[i]) * 0 : epoch(p, &r, 0, counts[i]);
        double share = 4000.0 / (double)counts[i];
        if (hits / 10 < 0.9 * share)
            fail_msg("%llu pieces: %.3f of %.3f", (unsigned long long)counts[i], hits / 10, share);
        policy_free(p);
    }
}

/* Another set that fits comes after rounds over too much: soon it is there. */
static void a_new_set_is_adopted(void **state)
{
    (void)state;
    struct rng r;
    struct policy *p = make(4000);
    rng_seed(&r, 1);
    for (unsigned e = 0; e < 12; e++)
        epoch(p, &r, 0, 6000);
    assert_true(policy_refuses(p));
    double hits = 0;
    for (unsigned e = 0; e < 5; e++)
        hits = epoch(p, &r, 100000, 3000);
    assert_true(hits > 0.95);
    assert_false(policy_refuses(p));
    policy_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_once_leaves_first),
        cmocka_unit_test(idle_sets_leave_first_and_whole),
        cmocka_unit_test(an_empty_cache_has_no_victim),
        cmocka_unit_test(a_whole_stays_longer_than_what_is_read_once),
        cmocka_unit_test(what_is_held_stays),
        cmocka_unit_test(more_bytes_than_32_bits_count),
        cmocka_unit_test(sums_agree),
        cmocka_unit_test(epochs_over_a_set_that_fits_hit),
        cmocka_unit_test(epochs_over_more_than_fits_hit_nearly_the_share),
        cmocka_unit_test(a_new_set_is_adopted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
