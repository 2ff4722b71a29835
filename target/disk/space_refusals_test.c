#include "target/disk/space_refusals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_the_first_is_said_and_the_next_are_counted(void **state)
{
    (void)state;
    struct space_refusals r = {0};
    uint64_t count = 0;
    assert_true(space_refusals_add(&r, 5, &count));
    assert_int_equal(count, 1);
    for (uint64_t i = 0; i < 10; i++)
        assert_false(space_refusals_add(&r, 5 + i, &count));
    assert_false(space_refusals_add(&r, 5 + SPACE_REFUSALS_PAUSE_MS - 1, &count));
    assert_true(space_refusals_add(&r, 5 + SPACE_REFUSALS_PAUSE_MS, &count));
    assert_int_equal(count, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_is_said_and_the_next_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
