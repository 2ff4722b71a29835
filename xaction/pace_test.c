/* A rate that several threads share. */
#include "xaction/pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_no_limit(void **state)
{
    (void)state;
    struct pace p = {.rate_bytes_s = 0};
    assert_int_equal(pace_take(&p, UINT64_MAX, 5), 0);
}

static void test_what_is_taken_is_paid_for(void **state)
{
    (void)state;
    struct pace p = {.rate_bytes_s = 1000};
    assert_int_equal(pace_take(&p, 500, 10000), 500);
    assert_int_equal(pace_take(&p, 500, 10000), 1000); /* another thread, at the same time */
    assert_int_equal(pace_take(&p, 250, 11000), 250);
}

static void test_idleness_saves_nothing(void **state)
{
    (void)state;
    struct pace p = {.rate_bytes_s = 1000};
    pace_take(&p, 1000, 1000);
    assert_int_equal(pace_take(&p, 1000, 60000), 1000);
}

static void test_another_rate_is_in_force_at_once(void **state)
{
    (void)state;
    struct pace p = {.rate_bytes_s = 1};
    assert_int_equal(pace_take(&p, 5000, 10000), 5000000);
    p.rate_bytes_s = 1000;
    assert_int_equal(pace_take(&p, 0, 11000), 4000);
    p.rate_bytes_s = 0;
    assert_int_equal(pace_take(&p, 0, 11000), 0);
}

/* Pieces of any size: over a long time it is the rate. */
static void test_the_rate_is_kept(void **state)
{
    (void)state;
    struct pace p = {.rate_bytes_s = 3000000};
    uint64_t now_ms = 7, bytes = 0;
    for (unsigned i = 1; i <= 10000; i++) {
        uint64_t piece = i * 7919 % 300000;
        bytes += piece;
        now_ms += pace_take(&p, piece, now_ms);
    }
    double seconds = (double)(now_ms - 7) / 1000;
    assert_true((double)bytes / seconds < 3010000);
    assert_true((double)bytes / seconds > 2990000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_limit),
        cmocka_unit_test(test_what_is_taken_is_paid_for),
        cmocka_unit_test(test_idleness_saves_nothing),
        cmocka_unit_test(test_another_rate_is_in_force_at_once),
        cmocka_unit_test(test_the_rate_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
