#include "target/ring/pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { INTERVAL = 10, HEARTBEAT = 60000 }; /* milliseconds */

static uint64_t pause_ms(const struct ring_pace *p)
{
    return ring_pace_due_ms(p, INTERVAL, HEARTBEAT) - p->stepped_ms;
}

static void fail_steps(struct ring_pace *p, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        ring_pace_begin(p, ring_pace_due_ms(p, INTERVAL, HEARTBEAT));
        ring_pace_end(p, true, true);
    }
}

static void test_reports_come_soon(void **state)
{
    (void)state;
    struct ring_pace p = {.stepped_ms = 0};
    ring_pace_begin(&p, 1000);
    assert_int_equal(ring_pace_due_ms(&p, INTERVAL, HEARTBEAT), 1000 + HEARTBEAT);
    ring_pace_wake(&p); /* while the step runs: it may have looked before */
    ring_pace_end(&p, false, false);
    assert_int_equal(ring_pace_due_ms(&p, INTERVAL, HEARTBEAT), 1000 + INTERVAL);
    ring_pace_begin(&p, 1010);
    ring_pace_end(&p, false, true);
    assert_int_equal(pause_ms(&p), INTERVAL);
}

static void test_failures_slow_it_down(void **state)
{
    (void)state;
    struct ring_pace p = {.stepped_ms = 0};
    fail_steps(&p, 1);
    assert_int_equal(pause_ms(&p), INTERVAL);
    fail_steps(&p, 3);
    assert_int_equal(pause_ms(&p), 8 * INTERVAL);
    fail_steps(&p, 100);
    const uint64_t longest_ms = pause_ms(&p);
    assert_in_range(longest_ms, 100 * INTERVAL, HEARTBEAT);
    ring_pace_wake(&p); /* a push alone does not make the keeper answer */
    assert_int_equal(pause_ms(&p), longest_ms);
    assert_int_equal(ring_pace_due_ms(&p, HEARTBEAT / 2, HEARTBEAT) - p.stepped_ms, HEARTBEAT);
    ring_pace_begin(&p, 1000000);
    ring_pace_end(&p, false, false);
    ring_pace_wake(&p);
    assert_int_equal(pause_ms(&p), INTERVAL);
}

static void test_a_new_keeper_is_told_soon(void **state)
{
    (void)state;
    struct ring_pace p = {.stepped_ms = 0};
    fail_steps(&p, 20);
    ring_pace_map_changed(&p);
    assert_int_equal(pause_ms(&p), INTERVAL);
    fail_steps(&p, 20);
    ring_pace_begin(&p, 1000000); /* a step to the lost keeper, which ends after the change */
    ring_pace_map_changed(&p);
    ring_pace_end(&p, true, true);
    assert_int_equal(pause_ms(&p), INTERVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reports_come_soon),
        cmocka_unit_test(test_failures_slow_it_down),
        cmocka_unit_test(test_a_new_keeper_is_told_soon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
