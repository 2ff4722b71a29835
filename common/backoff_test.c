#include "common/backoff.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_a_wait_doubles_up_to_the_greatest(void **state)
{
    (void)state;
    static const uint64_t expected[] = {50, 100, 200, 400, 800, 1600, 2000, 2000};
    const struct backoff b = {.first_ms = 50, .max_ms = 2000};
    for (unsigned i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_int_equal(backoff_ms(&b, i + 1), expected[i]);
    assert_int_equal(backoff_ms(&b, UINT_MAX), 2000);
    assert_int_equal(backoff_ms(&b, 0), 50);
}

static void test_the_greatest_holds_for_the_first_wait(void **state)
{
    (void)state;
    const struct backoff b = {.first_ms = 5000, .max_ms = 2000};
    assert_int_equal(backoff_ms(&b, 1), 2000);
    assert_int_equal(backoff_ms(&b, 2), 2000);
}

static void test_no_wait_stays_none(void **state)
{
    (void)state;
    const struct backoff b = {.first_ms = 0, .max_ms = 2000};
    assert_int_equal(backoff_ms(&b, UINT_MAX), 0);
}

static void test_a_wait_does_not_overflow(void **state)
{
    (void)state;
    const struct backoff b = {.first_ms = 3, .max_ms = UINT64_MAX};
    assert_true(backoff_ms(&b, 63) == UINT64_C(3) << 62);
    assert_true(backoff_ms(&b, 64) == UINT64_MAX);
    assert_true(backoff_ms(&b, UINT_MAX) == UINT64_MAX);
}

static void test_jitter_takes_at_most_a_half(void **state)
{
    (void)state;
    assert_int_equal(backoff_jitter(0, 12345), 0);
    assert_int_equal(backoff_jitter(1, 12345), 1);
    assert_int_equal(backoff_jitter(100, 0), 100);
    assert_int_equal(backoff_jitter(100, 50), 50);
    assert_int_equal(backoff_jitter(100, 51), 100);
    for (uint64_t luck = 0; luck < 200; luck++) {
        assert_true(backoff_jitter(7, luck) >= 4);
        assert_true(backoff_jitter(7, luck) <= 7);
    }
    assert_true(backoff_jitter(UINT64_MAX, UINT64_MAX) >= UINT64_MAX / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_wait_doubles_up_to_the_greatest),
        cmocka_unit_test(test_the_greatest_holds_for_the_first_wait),
        cmocka_unit_test(test_no_wait_stays_none),
        cmocka_unit_test(test_a_wait_does_not_overflow),
        cmocka_unit_test(test_jitter_takes_at_most_a_half),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
