#include "target/format/version.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct version v(uint64_t term, uint64_t map, uint64_t counter)
{
    return (struct version){.term = term, .map = map, .counter = counter};
}

static void assert_version(struct version got, struct version want)
{
    assert_int_equal(version_compare(&got, &want), 0);
    assert_int_equal(got.term, want.term);
    assert_int_equal(got.map, want.map);
    assert_int_equal(got.counter, want.counter);
}

static void test_order_is_term_then_map_then_counter(void **state)
{
    (void)state;
    const struct version rising[] = {v(0, 0, 0),          v(0, 0, 1), v(0, 1, 0),
                                     v(0, 1, UINT64_MAX), v(1, 0, 0), v(1, 0, 9),
                                     v(UINT64_MAX, 0, 0)};
    for (size_t i = 0; i < sizeof rising / sizeof *rising; i++) {
        for (size_t j = 0; j < sizeof rising / sizeof *rising; j++) {
            int order = version_compare(&rising[i], &rising[j]);
            assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
        }
    }
}

static void test_next_is_greater_than_the_old_one_and_the_map(void **state)
{
    (void)state;
    assert_version(version_next(NULL, 1, 7, 0), v(1, 7, 1));
    struct version old = v(1, 7, 1);
    assert_version(version_next(&old, 1, 7, 0), v(1, 7, 2));
    assert_version(version_next(&old, 1, 8, 0), v(1, 8, 1));
    assert_version(version_next(&old, 2, 1, 0), v(2, 1, 1));
    /* A copy from a later map than ours arrived here: still greater than it. */
    assert_version(version_next(&old, 1, 6, 0), v(1, 7, 2));
    old = v(1, 7, 0);
    assert_version(version_next(&old, 1, 7, 0), v(1, 7, 1));
}

static void test_next_is_above_the_floor(void **state)
{
    (void)state;
    struct version low = v(1, 7, 3), high = v(1, 7, 300);
    assert_version(version_next(NULL, 1, 7, 99), v(1, 7, 100));
    assert_version(version_next(&low, 1, 7, 99), v(1, 7, 100));
    assert_version(version_next(&low, 1, 6, 99), v(1, 7, 100)); /* a later map, a low counter */
    assert_version(version_next(&high, 1, 7, 99), v(1, 7, 301));
    assert_version(version_next(&high, 1, 8, 99), v(1, 8, 100));
}

static void test_text_form_round_trips(void **state)
{
    (void)state;
    char text[VERSION_TEXT_MAX];
    const uint64_t most = INT64_MAX / 2; /* a document's number, and so is what comes after it */
    struct version parsed, big = v(most, most, most), small = v(1, 7, 3);
    assert_string_equal(version_format(&small, text), "1.7.3");
    assert_int_equal(version_parse(text, &parsed, NULL), 0);
    assert_version(parsed, small);
    assert_int_equal(version_parse(version_format(&big, text), &parsed, NULL), 0);
    assert_version(parsed, big);
}

static void test_other_texts_are_refused(void **state)
{
    (void)state;
    char long_one[VERSION_TEXT_MAX + 1] = "1.2.";
    memset(long_one + 4, '0', sizeof long_one - 5);
    const char *const bad[] = {"",
                               "1",
                               "1.2",
                               "1.2.3.4",
                               "1..3",
                               ".1.2",
                               "1.2.",
                               "a.b.c",
                               "1.2.-3",
                               " 1.2.3",
                               long_one,
                               "1.2.18446744073709551616",
                               "1.2.18446744073709551615",
                               "1.4611686018427387904.3"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct version parsed = v(9, 9, 9);
        struct error err = ERROR_INIT;
        assert_int_equal(version_parse(bad[i], &parsed, &err), E_INVALID);
        assert_true(strlen(err.message) > 0);
        assert_version(parsed, v(9, 9, 9));
    }
}

static void test_after_counts_states_not_writes(void **state)
{
    (void)state;
    const struct version old = v(2, 7, 9);
    assert_false(version_is_after(&old, 2, 7));
    assert_true(version_is_after(&old, 2, 6));
    assert_false(version_is_after(&old, 2, 8));
    assert_true(version_is_after(&old, 1, 100));
    assert_false(version_is_after(&old, 3, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_is_term_then_map_then_counter),
        cmocka_unit_test(test_next_is_greater_than_the_old_one_and_the_map),
        cmocka_unit_test(test_next_is_above_the_floor),
        cmocka_unit_test(test_text_form_round_trips),
        cmocka_unit_test(test_other_texts_are_refused),
        cmocka_unit_test(test_after_counts_states_not_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
