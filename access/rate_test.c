#include "access/rate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const struct access_rate five = {.requests = 5, .bytes = 1000};

static void test_an_idle_user_has_one_seconds_requests(void **state)
{
    (void)state;
    struct rate r = {0};
    for (int i = 0; i < 5; i++)
        assert_int_equal(rate_take_request(&r, &five, 100000), 0);
    assert_int_equal(rate_take_request(&r, &five, 100000), 200);
    assert_int_equal(rate_take_request(&r, &five, 100199), 1);
    assert_int_equal(rate_take_request(&r, &five, 100200), 0);
    assert_int_equal(rate_take_request(&r, &five, 100200), 200);
}

static void test_the_rate_holds_over_time(void **state)
{
    (void)state;
    struct rate r = {0};
    int served = 0;
    for (uint64_t ms = 0; ms < 100000; ms++)
        served += rate_take_request(&r, &five, ms) == 0;
    assert_in_range(served, 500, 505);
}

static void test_owed_bytes_slow_a_stream_and_refuse_requests(void **state)
{
    (void)state;
    struct rate r = {0};
    assert_int_equal(rate_take_bytes(&r, &five, 1000, 0), 0);
    assert_int_equal(rate_take_bytes(&r, &five, 3000, 0), 3000);
    assert_int_equal(rate_take_request(&r, &five, 1000), 2000);
    assert_int_equal(rate_take_request(&r, &five, 3000), 0);
}

static void test_no_limit_takes_all(void **state)
{
    (void)state;
    static const struct access_rate none = {0};
    struct rate r = {0};
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(rate_take_request(&r, &none, 0), 0);
        assert_int_equal(rate_take_bytes(&r, &none, UINT32_MAX, 0), 0);
    }
    assert_int_equal(rate_take_request(&r, &five, 0), 0);
}

static void test_a_limit_may_change(void **state)
{
    (void)state;
    static const struct access_rate one = {.requests = 1};
    struct rate r = {0};
    for (int i = 0; i < 5; i++)
        assert_int_equal(rate_take_request(&r, &five, 0), 0);
    assert_int_equal(rate_take_request(&r, &one, 0), 5000);
    assert_int_equal(rate_take_request(&r, &five, 0), 200);
}

/* A clock that is set back gives nothing and takes nothing. */
static void test_time_does_not_go_back(void **state)
{
    (void)state;
    struct rate r = {0};
    for (int i = 0; i < 5; i++)
        assert_int_equal(rate_take_request(&r, &five, 100000), 0);
    assert_int_equal(rate_take_request(&r, &five, 1), 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_idle_user_has_one_seconds_requests),
        cmocka_unit_test(test_the_rate_holds_over_time),
        cmocka_unit_test(test_owed_bytes_slow_a_stream_and_refuse_requests),
        cmocka_unit_test(test_no_limit_takes_all),
        cmocka_unit_test(test_a_limit_may_change),
        cmocka_unit_test(test_time_does_not_go_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
