#include "common/parse.h"

#include <math.h>
#include <setjmp.h>
#include <cmocka.h>

#include "common/buf.h"
#include "common/rng.h"

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

static void whole_numbers(void **state)
{
    (void)state;
    uint64_t u = 7;
    int64_t i = 7;
    struct error err;
    assert_int_equal(parse_u64("0", &u, &err), 0);
    assert_int_equal(u, 0);
    assert_int_equal(parse_u64("18446744073709551615", &u, &err), 0);
    assert_true(u == UINT64_MAX);
    assert_int_equal(parse_u64("00042", &u, &err), 0);
    assert_int_equal(u, 42);
    assert_int_equal(parse_i64("-9223372036854775808", &i, &err), 0);
    assert_true(i == INT64_MIN);
    assert_int_equal(parse_i64("9223372036854775807", &i, &err), 0);
    assert_true(i == INT64_MAX);
    assert_int_equal(parse_i64("-0", &i, &err), 0);
    assert_int_equal(i, 0);
}

static void not_whole_numbers(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      " 1",
                                      "1 ",
                                      "+1",
                                      "1x",
                                      "x",
                                      "0x1",
                                      "1.0",
                                      "--1",
                                      "-",
                                      "1e3",
                                      "18446744073709551616",
                                      "184467440737095516150"};
    for (size_t k = 0; k < COUNT(bad); k++) {
        uint64_t u = 7;
        int64_t i = 7;
        struct error err = ERROR_INIT;
        assert_int_equal(parse_u64(bad[k], &u, &err), E_INVALID);
        assert_non_null(strstr(err.message, bad[k]));
        assert_int_equal(parse_i64(bad[k], &i, &err), E_INVALID);
        assert_true(u == 7 && i == 7);
    }
    uint64_t u;
    int64_t i;
    struct error err = ERROR_INIT;
    assert_int_equal(parse_u64("-1", &u, &err), E_INVALID);
    assert_string_equal(err.message, "'-1' is not a whole number, 0 or more");
    assert_int_equal(parse_u64("18446744073709551616", &u, &err), E_INVALID);
    assert_string_equal(err.message, "'18446744073709551616' is too large");
    assert_int_equal(parse_i64("9223372036854775808", &i, NULL), E_INVALID);
    assert_int_equal(parse_i64("-9223372036854775809", &i, NULL), E_INVALID);
}

static void decimal_numbers(void **state)
{
    (void)state;
    double d = 0;
    assert_int_equal(parse_double("-1.5e3", &d, NULL), 0);
    assert_true(d == -1500);
    assert_int_equal(parse_double(".5", &d, NULL), 0);
    assert_true(d == 0.5);
    assert_int_equal(parse_double("1e-400", &d, NULL), 0);
    assert_true(d == 0);
    static const char *const bad[] = {"",      " 1",    "1 ", "inf", "nan", "0x10",
                                      "1e999", "1.2.3", "e5", "+",   "1f",  "-inf"};
    for (size_t k = 0; k < COUNT(bad); k++) {
        if (parse_double(bad[k], &d, NULL) != E_INVALID)
            fail_msg("'%s' was taken", bad[k]);
    }
}

static void sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t want;
    } rows[] = {
        {"0", 0},
        {"10", 10},
        {"10b", 10},
        {"64k", 64 << 10},
        {"64K", 64 << 10},
        {"64KB", 64 << 10},
        {"64KiB", 64 << 10},
        {"64kib", 64 << 10},
        {"64Ki", 64 << 10},
        {"1.5MiB", 3 << 19},
        {"2G", 2ull << 30},
        {"0.1k", 102},
        {"1.000000000000000001k", 1024},
        {"3T", 3ull << 40},
        {"1P", 1ull << 50},
        {"15.5E", 31ull << 59},
        {"15.999999999999999999EiB", UINT64_MAX - 1},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t got = 0;
        if (parse_size(rows[i].text, &got, NULL) != 0 || got != rows[i].want)
            fail_msg("'%s' gives %llu", rows[i].text, (unsigned long long)got);
    }
    static const char *const bad[] = {"",
                                      "k",
                                      "1.5",
                                      "1.5b",
                                      "1 k",
                                      "-1",
                                      "1.k",
                                      ".5k",
                                      "1kk",
                                      "1bk",
                                      "1kiB ",
                                      "16E",
                                      "1x",
                                      "1..5k",
                                      "1.0000000000000000001k",
                                      "18446744073709551616"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        uint64_t got = 7;
        struct error err = ERROR_INIT;
        if (parse_size(bad[i], &got, &err) != E_INVALID || got != 7)
            fail_msg("'%s' was taken", bad[i]);
        assert_non_null(strstr(err.message, bad[i]));
    }
}

/* What is a size, and more than a number holds, is not called something else. */
static void quantities_that_are_too_large(void **state)
{
    (void)state;
    static const char *const sizes[] = {"99EiB", "16E", "18446744073709551616"};
    uint64_t got;
    struct error err = ERROR_INIT;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        assert_int_equal(parse_size(sizes[i], &got, &err), E_INVALID);
        assert_non_null(strstr(err.message, "is too large"));
    }
    assert_int_equal(parse_duration_ms("213503982335d", &got, &err), E_INVALID);
    assert_string_equal(err.message, "'213503982335d' is too large");
}

static void durations(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t want;
    } rows[] = {
        {"0", 0},       {"250", 250},    {"250ms", 250},    {"10s", 10000},     {"1.25s", 1250},
        {"5m", 300000}, {"2h", 7200000}, {"7d", 604800000}, {"0.5d", 43200000},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t got = 7;
        if (parse_duration_ms(rows[i].text, &got, NULL) != 0 || got != rows[i].want)
            fail_msg("'%s' gives %llu", rows[i].text, (unsigned long long)got);
    }
    static const char *const bad[] = {"",    "s",   "1.5", "1.5ms", "10 s",
                                      "-1s", "1us", "1w",  "1ss",   "213503982335d"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        uint64_t got = 7;
        if (parse_duration_ms(bad[i], &got, NULL) != E_INVALID || got != 7)
            fail_msg("'%s' was taken", bad[i]);
    }
}

static void booleans(void **state)
{
    (void)state;
    static const char *const yes[] = {"true", "yes", "on", "1", "True", "ON"};
    static const char *const no[] = {"false", "no", "off", "0", "FALSE"};
    static const char *const bad[] = {"", "t", "2", "yes ", "truefalse"};
    for (size_t i = 0; i < COUNT(yes); i++) {
        bool b = false;
        assert_int_equal(parse_bool(yes[i], &b, NULL), 0);
        assert_true(b);
    }
    for (size_t i = 0; i < COUNT(no); i++) {
        bool b = true;
        assert_int_equal(parse_bool(no[i], &b, NULL), 0);
        assert_false(b);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        bool b;
        assert_int_equal(parse_bool(bad[i], &b, NULL), E_INVALID);
    }
}

static void percent_decoding(void **state)
{
    (void)state;
    char out[64];
    assert_int_equal(parse_url_unescape("a%2Fb%2fc+d%25", 14, out, NULL), 8);
    assert_string_equal(out, "a/b/c+d%");
    assert_int_equal(parse_url_unescape("", 0, out, NULL), 0);
    assert_string_equal(out, "");
    assert_int_equal(parse_url_unescape("%ff", 3, out, NULL), 1);
    assert_int_equal((unsigned char)out[0], 0xff);
    static const struct {
        const char *text;
        const char *why;
    } bad[] = {
        {"ab%", "bad percent escape at byte 2"},  {"ab%2", "bad percent escape at byte 2"},
        {"%2", "bad percent escape at byte 0"},   {"%zz", "bad percent escape at byte 0"},
        {"a%2g", "bad percent escape at byte 1"}, {"a%00", "NUL at byte 1"},
        {"%%41", "bad percent escape at byte 0"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct error err = ERROR_INIT;
        assert_int_equal(parse_url_unescape(bad[i].text, strlen(bad[i].text), out, &err),
                         E_INVALID);
        assert_string_equal(err.message, bad[i].why);
    }
    assert_int_equal(parse_url_unescape("a\0b", 3, out, NULL), E_INVALID);
    /* The escape ends with the text, whatever stands behind it. */
    assert_int_equal(parse_url_unescape("%41", 2, out, NULL), E_INVALID);
}

static void percent_escapes_decode_to_what_they_were(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 5);
    for (int round = 0; round < 1000; round++) {
        char text[50];
        char out[51];
        size_t len = rng_below(&r, sizeof text);
        for (size_t i = 0; i < len; i++)
            text[i] = (char)(1 + rng_below(&r, 255));
        struct buf b = BUF_INIT;
        buf_put_url_escaped(&b, text, len, "/");
        assert_int_equal(parse_url_unescape(buf_str(&b), b.len, out, NULL), len);
        assert_memory_equal(out, text, len);
        buf_done(&b);
    }
}

static void sizes_for_people(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *want;
    } rows[] = {
        {0, "0 B"},
        {17, "17 B"},
        {1023, "1023 B"},
        {1024, "1 KiB"},
        {1536, "1.5 KiB"},
        {312 << 10, "312 KiB"},
        {(312 << 10) + 512, "313 KiB"},
        {99 * 1024 + 512, "99.5 KiB"},
        {1048575, "1 MiB"},
        {3ull << 29, "1.5 GiB"},
        {1ull << 60, "1 EiB"},
        {UINT64_MAX, "16 EiB"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char out[16];
        assert_string_equal(format_size(rows[i].bytes, out), rows[i].want);
    }
}

static void durations_for_people(void **state)
{
    (void)state;
    static const struct {
        uint64_t ms;
        const char *want;
    } rows[] = {
        {0, "0ms"},           {999, "999ms"},       {1000, "1.0s"},
        {1299, "1.2s"},       {59999, "59.9s"},     {185000, "3m05s"},
        {3600000, "1h00m"},   {86399999, "23h59m"}, {86400000, "1d00h"},
        {788400000, "9d03h"}, {864000000, "10d"},   {UINT64_MAX, "213503982334d"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char out[16];
        assert_string_equal(format_duration(rows[i].ms, out), rows[i].want);
    }
}

static void hexadecimal(void **state)
{
    (void)state;
    const unsigned char bytes[] = {0x00, 0x0f, 0xa5, 0xff};
    unsigned char back[4];
    char text[9];
    format_hex(bytes, sizeof bytes, text);
    assert_string_equal(text, "000fa5ff");
    assert_int_equal(parse_hex("000FA5ff", back, 4, NULL), 0);
    assert_memory_equal(back, bytes, 4);
    static const char *const bad[] = {"",         "000fa5f",  "000fa5ff0",
                                      "000fa5fg", "0x0fa5ff", "-00fa5ff"};
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(parse_hex(bad[i], back, 4, NULL), E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(not_whole_numbers),
        cmocka_unit_test(decimal_numbers),
        cmocka_unit_test(sizes),
        cmocka_unit_test(quantities_that_are_too_large),
        cmocka_unit_test(durations),
        cmocka_unit_test(booleans),
        cmocka_unit_test(percent_decoding),
        cmocka_unit_test(percent_escapes_decode_to_what_they_were),
        cmocka_unit_test(sizes_for_people),
        cmocka_unit_test(durations_for_people),
        cmocka_unit_test(hexadecimal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
