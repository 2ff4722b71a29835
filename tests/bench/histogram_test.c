#include "tests/bench/histogram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void small_values_are_exact(void **state)
{
    (void)state;
    struct histogram h = {0};
    for (uint64_t v = 1; v <= 20; v++)
        histogram_add(&h, v);
    assert_int_equal(histogram_quantile(&h, 500), 10);
    assert_int_equal(histogram_quantile(&h, 950), 19);
    assert_int_equal(histogram_quantile(&h, 1000), 20);
    assert_int_equal(h.sum, 210);
}

static void large_values_are_within_three_percent(void **state)
{
    (void)state;
    for (uint64_t v = 33; v < (1ull << 62); v = v * 7 / 3) {
        struct histogram h = {0};
        histogram_add(&h, v);
        histogram_add(&h, UINT64_MAX);
        uint64_t q = histogram_quantile(&h, 500);
        assert_true(q >= v);
        assert_true(q - v <= v / 32);
        assert_true(histogram_quantile(&h, 1000) == UINT64_MAX);
    }
}

static void merged_equals_one(void **state)
{
    (void)state;
    struct histogram one = {0}, a = {0}, b = {0};
    for (uint64_t v = 0; v < 100000; v += 37) {
        histogram_add(&one, v);
        histogram_add(v % 2 ? &a : &b, v);
    }
    histogram_merge(&a, &b);
    assert_memory_equal(&one, &a, sizeof one);
}

static void empty_has_no_quantile(void **state)
{
    (void)state;
    struct histogram h = {0};
    assert_int_equal(histogram_quantile(&h, 990), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_values_are_exact),
        cmocka_unit_test(large_values_are_within_three_percent),
        cmocka_unit_test(merged_equals_one),
        cmocka_unit_test(empty_has_no_quantile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
