/* Counters are taken once, also where they come out of order. */
#include "net/auth/window.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_each_counter_is_taken_once(void **state)
{
    (void)state;
    struct auth_window w = {0};
    assert_false(auth_window_take(&w, 0));
    for (uint64_t c = 1; c <= 3; c++)
        assert_true(auth_window_take(&w, c));
    assert_false(auth_window_take(&w, 2));
    assert_true(auth_window_take(&w, 100));
    for (uint64_t c = 99; c > 3; c--)
        assert_true(auth_window_take(&w, c));
    for (uint64_t c = 1; c <= 100; c++)
        assert_false(auth_window_take(&w, c));
}

static void test_the_window_has_an_end(void **state)
{
    (void)state;
    struct auth_window w = {0};
    assert_true(auth_window_take(&w, 1));
    assert_true(auth_window_take(&w, AUTH_WINDOW + 2));
    assert_false(auth_window_take(&w, 2)); /* just outside, though nobody took it */
    assert_true(auth_window_take(&w, 3));  /* just inside */
    assert_false(auth_window_take(&w, 3));
    assert_true(auth_window_take(&w, UINT64_MAX));
    assert_false(auth_window_take(&w, AUTH_WINDOW + 3));
    assert_false(auth_window_take(&w, UINT64_MAX));
    assert_true(auth_window_take(&w, UINT64_MAX - AUTH_WINDOW + 1));
}

static void test_the_last_counters_follow_each_other(void **state)
{
    (void)state;
    struct auth_window w = {0};
    assert_true(auth_window_take(&w, UINT64_MAX - 1));
    assert_true(auth_window_take(&w, UINT64_MAX));
    assert_false(auth_window_take(&w, UINT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_counter_is_taken_once),
        cmocka_unit_test(test_the_window_has_an_end),
        cmocka_unit_test(test_the_last_counters_follow_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
