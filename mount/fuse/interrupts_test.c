#include "mount/fuse/interrupts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define STATUS(pending) "Name:\tcat\nSigQ:\t1/9\nSigPnd:\t" pending "\nShdPnd:\t0000000000000100\n"

static void a_pending_kill_is_seen(void **state)
{
    (void)state;
    assert_true(interrupts_parse_killed(STATUS("0000000000000100")));
    assert_true(interrupts_parse_killed(STATUS("8000000000004102")));
}

static void other_signals_do_not_count(void **state)
{
    (void)state;
    assert_false(interrupts_parse_killed(STATUS("0000000000000000")));
    assert_false(interrupts_parse_killed(STATUS("fffffffffffffeff")));
    assert_false(interrupts_parse_killed("Name:\tcat\n"));
    assert_false(interrupts_parse_killed(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pending_kill_is_seen),
        cmocka_unit_test(other_signals_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
