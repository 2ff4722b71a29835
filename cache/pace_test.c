#include "cache/pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define FAST 1000
#define SLOW 300000
#define STORE 60000

static void store_takes(struct pace_side *store, uint64_t us, uint64_t now_ms)
{
    for (unsigned i = 0; i < PACE_SAMPLES; i++)
        pace_note(store, us, now_ms);
}

static void latency_is_the_ninetieth_percentile(void **state)
{
    (void)state;
    struct pace_side s = {0};
    for (uint64_t i = 1; i < PACE_LEAST; i++)
        pace_note(&s, 5, 0);
    assert_int_equal(pace_latency_us(&s, 0), 0); /* too few */
    for (uint64_t i = 1; i <= 10 * PACE_SAMPLES; i++)
        pace_note(&s, i % 16 == 0 ? 9000 : 10, i);
    assert_int_equal(pace_latency_us(&s, 0), 10);
    for (uint64_t i = 0; i < PACE_SAMPLES; i++)
        pace_note(&s, i % 5 == 0 ? UINT64_MAX : 10, 1000);
    assert_int_equal(pace_latency_us(&s, 1000), UINT32_MAX);
    assert_int_equal(pace_latency_us(&s, 1001), 0); /* all are older */
}

static void a_slow_directory_is_passed_by_and_tried(void **state)
{
    (void)state;
    struct pace p = {0};
    struct pace_side store = {0};
    uint64_t now = 100000;
    store_takes(&store, STORE, now);
    for (unsigned i = 0; i < PACE_LEAST; i++) {
        assert_false(pace_passes_by(&p, &store, now));
        pace_read(&p, &store, SLOW, now);
    }
    unsigned tries = 0;
    for (unsigned i = 0; i < 1000; i++, now += 10) { /* 10 s of reads */
        if (!pace_passes_by(&p, &store, now)) {
            tries++;
            pace_read(&p, &store, SLOW, now);
        }
    }
    assert_in_range(tries, 18, 20);
    now = p.tried_ms + 1;
    for (unsigned i = 0; i < PACE_TRIES; i++) { /* it is fast again */
        assert_true(pace_passes_by(&p, &store, now));
        now += PACE_TRY_MS;
        assert_false(pace_passes_by(&p, &store, now));
        pace_read(&p, &store, FAST, now);
    }
    assert_false(p.passed_by);
    assert_false(pace_passes_by(&p, &store, now));
}

static void one_fast_try_is_not_enough(void **state)
{
    (void)state;
    struct pace p = {.passed_by = true};
    struct pace_side store = {0};
    store_takes(&store, STORE, 0);
    for (unsigned i = 0; i < 50; i++)
        pace_read(&p, &store, i % PACE_TRIES == 0 ? SLOW : FAST, i);
    assert_true(p.passed_by);
}

static void a_fast_directory_is_used_even_if_the_store_is_faster(void **state)
{
    (void)state;
    struct pace p = {0};
    struct pace_side store = {0};
    store_takes(&store, 10, 0);
    for (unsigned i = 0; i < 100; i++) {
        assert_false(pace_passes_by(&p, &store, i));
        pace_read(&p, &store, PACE_FAST_US - 1, i);
    }
    assert_false(p.passed_by);
}

/* All reads hit, so the store's latency is not known. */
static void the_store_is_asked_where_the_directory_is_slow(void **state)
{
    (void)state;
    struct pace p = {0};
    struct pace_side store = {0};
    uint64_t now = 10 * PACE_STORE_OLD_MS;
    store_takes(&store, 2 * SLOW, now - PACE_STORE_OLD_MS - 1); /* long ago */
    unsigned asked = 0;
    for (unsigned i = 0; i < 200 && !p.passed_by; i++, now += 20) {
        if (pace_passes_by(&p, &store, now)) {
            pace_note(&store, STORE, now);
            asked++;
        } else {
            pace_read(&p, &store, SLOW, now);
        }
    }
    assert_true(p.passed_by);
    assert_true(asked >= PACE_LEAST);
}

static void a_slow_directory_before_a_slower_store_is_used(void **state)
{
    (void)state;
    struct pace p = {0};
    struct pace_side store = {0};
    uint64_t passed = 0;
    for (uint64_t now = 0; now < 20000; now += 20) {
        if (pace_passes_by(&p, &store, now)) {
            pace_note(&store, 2 * SLOW, now);
            passed++;
        } else {
            pace_read(&p, &store, SLOW, now);
        }
    }
    assert_false(p.passed_by);
    assert_in_range(passed, PACE_LEAST, 2 * PACE_LEAST); /* once it is known, no more */
}

static void nobody_waits_where_it_may_be_long(void **state)
{
    (void)state;
    struct pace p = {0};
    const struct pace_side store = {0};
    uint64_t now = 100000;
    assert_true(pace_near_begin(&p, now));
    assert_true(pace_near_begin(&p, now + 10));
    now += PACE_FAST_US / 1000;
    assert_false(pace_near_begin(&p, now)); /* nothing has moved: the disk may hang */
    pace_near_end(&p, now);
    assert_true(pace_near_begin(&p, now + 1)); /* it does not */
    pace_near_end(&p, now);
    pace_near_end(&p, now);
    now += 100 * PACE_SECOND_MS;
    assert_true(pace_near_begin(&p, now)); /* nobody waits */
    pace_near_end(&p, now);
    pace_read(&p, &store, SLOW, now);
    assert_false(pace_near_begin(&p, now + PACE_SECOND_MS - 1));
    pace_read(&p, &store, FAST, now);
    assert_true(pace_near_begin(&p, now + PACE_SECOND_MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(latency_is_the_ninetieth_percentile),
        cmocka_unit_test(a_slow_directory_is_passed_by_and_tried),
        cmocka_unit_test(one_fast_try_is_not_enough),
        cmocka_unit_test(a_fast_directory_is_used_even_if_the_store_is_faster),
        cmocka_unit_test(the_store_is_asked_where_the_directory_is_slow),
        cmocka_unit_test(a_slow_directory_before_a_slower_store_is_used),
        cmocka_unit_test(nobody_waits_where_it_may_be_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
