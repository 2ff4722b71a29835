#include "target/ring/producers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_the_last_push_is_known(void **state)
{
    (void)state;
    struct producers *p = producers_new();
    struct push_done done = {.lane = "t1.a", .first = 5, .count = 2}, got;
    assert_false(producers_find(p, 7, 0, &got));
    producers_note(p, 7, 0, &done);
    assert_true(producers_find(p, 7, 0, &got));
    assert_int_equal(got.first, 5);
    assert_string_equal(got.lane, "t1.a");
    done.first = 7;
    producers_note(p, 7, 1, &done);
    assert_false(producers_find(p, 7, 0, &got));
    assert_true(producers_find(p, 7, 1, &got));
    producers_note(p, 0, 1, &done);
    assert_false(producers_find(p, 0, 1, &got));
    producers_free(p);
}

static void test_a_log_is_read(void **state)
{
    (void)state;
    struct producers *p = producers_new();
    struct push_done got;
    for (uint64_t i = 10; i < 13; i++)
        producers_see(p, 7, 4, "t1.a", i);
    assert_true(producers_find(p, 7, 4, &got));
    assert_int_equal(got.first, 10);
    assert_int_equal(got.count, 3);
    producers_see(p, 7, 5, "t1.a", 13);
    assert_true(producers_find(p, 7, 5, &got));
    assert_int_equal(got.count, 1);
    producers_free(p);
}

/* After a restart, or when a mountpath is enabled. */
static void test_the_newer_log_is_read_first(void **state)
{
    (void)state;
    struct producers *p = producers_new();
    struct push_done got;
    producers_see(p, 7, 9, "t1.b", 0);
    producers_see(p, 7, 9, "t1.b", 1);
    producers_see(p, 7, 7, "t1.a", 40);
    producers_see(p, 7, 8, "t1.a", 41);
    assert_false(producers_find(p, 7, 8, &got));
    assert_true(producers_find(p, 7, 9, &got));
    assert_string_equal(got.lane, "t1.b");
    assert_int_equal(got.first, 0);
    assert_int_equal(got.count, 2);
    producers_free(p);
}

/* A maker that began anew at 0: its last push is known, whatever number earlier ones had. */
static void test_a_maker_counts_anew(void **state)
{
    (void)state;
    struct producers *p = producers_new();
    struct push_done got;
    for (int again = 0; again < 2; again++) { /* the mountpath comes back */
        producers_see(p, 7, 100, "t1.a", 0);
        producers_see(p, 7, 0, "t1.a", 1);
        producers_see(p, 7, 0, "t1.a", 2);
        assert_true(producers_find(p, 7, 0, &got));
        assert_int_equal(got.first, 1);
        assert_int_equal(got.count, 2);
    }
    producers_free(p);
}

static void test_the_silent_ones_go(void **state)
{
    (void)state;
    struct producers *p = producers_new();
    const struct push_done done = {.count = 1};
    struct push_done got;
    for (uint64_t i = 1; i <= PRODUCERS_WAYS + 1; i++) {
        producers_note(p, i * PRODUCERS_ROWS, 1, &done);
        producers_note(p, PRODUCERS_ROWS, i, &done); /* it is not silent */
    }
    assert_true(producers_find(p, PRODUCERS_ROWS, PRODUCERS_WAYS + 1, &got));
    assert_false(producers_find(p, 2 * PRODUCERS_ROWS, 1, &got));
    assert_true(producers_find(p, 3 * PRODUCERS_ROWS, 1, &got));
    producers_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_last_push_is_known),
        cmocka_unit_test(test_a_log_is_read),
        cmocka_unit_test(test_the_newer_log_is_read_first),
        cmocka_unit_test(test_a_maker_counts_anew),
        cmocka_unit_test(test_the_silent_ones_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
