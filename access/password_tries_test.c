#include "access/password_tries.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

enum { WINDOW = PASSWORD_TRIES_WINDOW_MS };

static int set_up(void **state)
{
    *state = password_tries_new();
    return 0;
}

static int tear_down(void **state)
{
    password_tries_free(*state);
    return 0;
}

static void test_the_sixth_failure_of_a_minute_waits_for_one(void **state)
{
    struct password_tries *t = *state;
    for (uint64_t i = 0; i < 5; i++)
        assert_int_equal(password_tries_begin(t, "ann", 1000 + i), 0);
    assert_int_equal(password_tries_begin(t, "ann", 1005), WINDOW - 1);
    assert_int_equal(password_tries_begin(t, "ben", 1005), 0);
    assert_int_equal(password_tries_begin(t, "ann", 1003 + WINDOW), 1); /* waiting adds nothing */
    assert_int_equal(password_tries_begin(t, "ann", 1004 + WINDOW), 0);
    assert_int_equal(password_tries_begin(t, "ann", 1005 + WINDOW), 0);
}

/* Whichever minute is looked at. */
static void test_five_failures_in_more_than_a_minute_do_not_wait(void **state)
{
    struct password_tries *t = *state;
    for (uint64_t i = 0; i < 50; i++)
        assert_int_equal(password_tries_begin(t, "ann", i * WINDOW / 4), 0);
    const uint64_t now = 50 * WINDOW / 4;
    assert_int_equal(password_tries_begin(t, "ann", now - 1), 0);
    assert_int_not_equal(password_tries_begin(t, "ann", now), 0);
}

static void test_a_right_password_forgives(void **state)
{
    struct password_tries *t = *state;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4; i++)
            assert_int_equal(password_tries_begin(t, "ann", 5), 0);
        assert_int_equal(password_tries_begin(t, "ben", 5), 0);
        password_tries_forgive(t, "ann");
    }
    assert_int_equal(password_tries_begin(t, "ben", 5), 0);
    password_tries_forgive(t, "nobody");
}

static void test_names_are_bounded_and_the_oldest_is_forgotten(void **state)
{
    struct password_tries *t = *state;
    char name[16];
    for (int i = 0; i < 5; i++)
        assert_int_equal(password_tries_begin(t, "early", 10), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(password_tries_begin(t, "late", 11), 0);
    for (int i = 0; i < PASSWORD_NAMES_MAX - 2; i++) {
        snprintf(name, sizeof name, "n%d", i);
        assert_int_equal(password_tries_begin(t, name, 12), 0);
    }
    assert_int_not_equal(password_tries_begin(t, "early", 13), 0);
    assert_int_equal(password_tries_begin(t, "one more", 13), 0);
    assert_int_equal(password_tries_begin(t, "early", 14), 0);
    assert_int_equal(password_tries_begin(t, "late", 14), 0); /* whose place "early" has now */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_sixth_failure_of_a_minute_waits_for_one, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_five_failures_in_more_than_a_minute_do_not_wait,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_right_password_forgives, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names_are_bounded_and_the_oldest_is_forgotten, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
