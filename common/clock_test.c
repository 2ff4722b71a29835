#include "common/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "common/error.h"

static void the_monotonic_clock_does_not_go_back(void **state)
{
    (void)state;
    uint64_t last_us = clock_us();
    uint64_t last_ms = clock_ms();
    for (int i = 0; i < 10000; i++) {
        uint64_t us = clock_us();
        uint64_t ms = clock_ms();
        assert_true(us >= last_us && ms >= last_ms && ms >= us / 1000);
        last_us = us;
        last_ms = ms;
    }
}

static void the_wall_clock_agrees_with_time(void **state)
{
    (void)state;
    int64_t before_s = time(NULL);
    int64_t now_ms = clock_wall_ms();
    int64_t after_s = time(NULL);
    assert_true(now_ms / 1000 >= before_s - 1 && now_ms / 1000 <= after_s + 1);
}

static void formats(void **state)
{
    (void)state;
    char out[32];
    assert_string_equal(clock_format_rfc3339(0, out), "1970-01-01T00:00:00Z");
    assert_string_equal(clock_format_rfc3339(1795230245999, out), "2026-11-21T03:04:05Z");
    assert_string_equal(clock_format_rfc3339(951782400000, out), "2000-02-29T00:00:00Z");
    assert_string_equal(clock_format_rfc3339(-1, out), "1969-12-31T23:59:59Z");
    assert_string_equal(clock_format_rfc3339(-1000, out), "1969-12-31T23:59:59Z");
    assert_string_equal(clock_format_rfc3339(-1001, out), "1969-12-31T23:59:58Z");
    assert_string_equal(clock_format_rfc3339(253402300799999, out), "9999-12-31T23:59:59Z");
    assert_string_equal(clock_format_rfc3339(253402300800000, out), "1970-01-01T00:00:00Z");
    assert_string_equal(clock_format_rfc3339(INT64_MAX, out), "1970-01-01T00:00:00Z");
    assert_string_equal(clock_format_http(1795230245, out), "Sat, 21 Nov 2026 03:04:05 GMT");
    assert_string_equal(clock_format_http(784111777, out), "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_string_equal(clock_format_http(INT64_MIN, out), "Thu, 01 Jan 1970 00:00:00 GMT");
}

static void the_three_forms_of_http_dates(void **state)
{
    (void)state;
    static const char *const forms[] = {
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    };
    for (size_t i = 0; i < 3; i++) {
        int64_t t = 0;
        assert_int_equal(clock_parse_http(forms[i], &t), 0);
        assert_int_equal(t, 784111777);
    }
    int64_t t;
    assert_int_equal(clock_parse_http("Wed Nov 16 08:49:37 1994", &t), 0);
    assert_int_equal(clock_parse_http("Sat, 31 Dec 2016 23:59:60 GMT", &t), 0);
    assert_int_equal(t, 1483228800);
    assert_int_equal(clock_parse_http("Tue, 29 Feb 2000 00:00:00 GMT", &t), 0);
    assert_int_equal(t, 951782400);
}

static void what_is_formatted_parses_again(void **state)
{
    (void)state;
    for (int64_t t = -5000000000; t < 100000000000; t += 86399 * 997) {
        char text[32];
        int64_t back = 0;
        assert_int_equal(clock_parse_http(clock_format_http(t, text), &back), 0);
        assert_int_equal(back, t);
    }
}

static void two_digit_years_lie_within_fifty_years(void **state)
{
    (void)state;
    char out[32];
    clock_format_rfc3339(clock_wall_ms(), out);
    int this_year = (int)strtol(out, NULL, 10);
    for (int year = this_year - 49; year <= this_year + 50; year++) {
        char text[64];
        char want[16];
        int64_t t = 0;
        snprintf(text, sizeof text, "Monday, 01-Jul-%02d 00:00:00 GMT", year % 100);
        assert_int_equal(clock_parse_http(text, &t), 0);
        snprintf(want, sizeof want, "%04d-07-01", year);
        assert_memory_equal(clock_format_rfc3339(t * 1000, out), want, 10);
    }
}

static void other_texts_are_no_dates(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "Sun",
        "Sun, 06 Nov 1994",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        " Sun, 06 Nov 1994 08:49:37 GMT",
        "sun, 06 nov 1994 08:49:37 gmt",
        "Xyz, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nix 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:00 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 29 Feb 1900 08:49:37 GMT",
        "Sun, 06-Nov-94 08:49:37 GMT",
        "Sunday, 06 Nov 1994 08:49:37 GMT",
        "Sun Nov 06 08:49:37 94",
        "1994-11-06T08:49:37Z",
        "784111777",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int64_t t = -7;
        if (clock_parse_http(bad[i], &t) != E_INVALID || t != -7)
            fail_msg("'%s' was taken", bad[i]);
    }
}

static void rfc3339(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t unix_s;
    } good[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2026-11-21T03:04:05Z", 1795230245},
        {"2026-11-21T03:04:05.999999999Z", 1795230245},
        {"2026-11-21T04:34:05+01:30", 1795230245},
        {"2026-11-20T22:04:05.5-05:00", 1795230245},
        {"2016-12-31T23:59:60Z", 1483228800},
        {"1969-12-31T23:59:59Z", -1},
    };
    static const char *const bad[] = {
        "",
        "2026",
        "2026-11-21",
        "2026-11-21T03:04:05",
        "2026-11-21 03:04:05Z",
        "2026-11-21T03:04:05z",
        "2026-11-21T03:04:05Z ",
        " 2026-11-21T03:04:05Z",
        "2026-11-21T03:04:05.Z",
        "2026-11-21T03:04:05,5Z",
        "2026-11-21T03:04:05+0100",
        "2026-11-21T03:04:05+24:00",
        "2026-11-21T03:04:05-00:60",
        "2026-00-21T03:04:05Z",
        "2026-13-21T03:04:05Z",
        "2026-02-29T03:04:05Z",
        "2026-11-00T03:04:05Z",
        "2026-11-31T03:04:05Z",
        "2026-11-21T24:00:00Z",
        "2026-11-21T23:60:00Z",
        "2026-11-21T23:59:61Z",
        "26-11-21T03:04:05Z",
        "+026-11-21T03:04:05Z",
        "1795230245",
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        int64_t t = -7;
        assert_int_equal(clock_parse_rfc3339(good[i].text, &t), 0);
        assert_int_equal(t, good[i].unix_s);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int64_t t = -7;
        if (clock_parse_rfc3339(bad[i], &t) != E_INVALID || t != -7)
            fail_msg("'%s' was taken", bad[i]);
    }
    for (int64_t t = -5000000000; t < 100000000000; t += 86399 * 997) {
        char text[32];
        int64_t back = 0;
        assert_int_equal(clock_parse_rfc3339(clock_format_rfc3339(t * 1000, text), &back), 0);
        assert_int_equal(back, t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_monotonic_clock_does_not_go_back),
        cmocka_unit_test(the_wall_clock_agrees_with_time),
        cmocka_unit_test(formats),
        cmocka_unit_test(the_three_forms_of_http_dates),
        cmocka_unit_test(what_is_formatted_parses_again),
        cmocka_unit_test(two_digit_years_lie_within_fifty_years),
        cmocka_unit_test(other_texts_are_no_dates),
        cmocka_unit_test(rfc3339),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
