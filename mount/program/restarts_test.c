#include "mount/program/restarts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void the_limit_is_of_a_minute(void **state)
{
    (void)state;
    struct restarts r;
    restarts_init(&r, 3);
    assert_true(restarts_allow(&r, 0));
    assert_true(restarts_allow(&r, 10));
    assert_true(restarts_allow(&r, 20));
    assert_false(restarts_allow(&r, 59999));
    assert_true(restarts_allow(&r, 60000));
    assert_false(restarts_allow(&r, 60001));
    assert_true(restarts_allow(&r, 60010));
    for (uint64_t now = 100000; now < 1000000; now += 20000)
        assert_true(restarts_allow(&r, now));
}

static void none_and_many_are_limits(void **state)
{
    (void)state;
    struct restarts r;
    restarts_init(&r, 0);
    assert_false(restarts_allow(&r, 100));
    restarts_init(&r, RESTARTS_MAX);
    for (unsigned i = 0; i < RESTARTS_MAX; i++)
        assert_true(restarts_allow(&r, 1));
    assert_false(restarts_allow(&r, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limit_is_of_a_minute),
        cmocka_unit_test(none_and_many_are_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
