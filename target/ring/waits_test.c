/* Who waits is taken when the time is over, or when what it waits for is there; at most so many. */
#include "target/ring/waits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static bool beyond_five(const struct ring_wait *wait)
{
    return wait->value < 5;
}

static void test_due_ones_are_taken(void **state)
{
    (void)state;
    struct ring_waits *w = ring_waits_new(3);
    struct ring_wait a = {.is_due = beyond_five, .value = 4, .until_ms = 100},
                     b = {.is_due = beyond_five, .value = 5, .until_ms = 50},
                     c = {.is_due = beyond_five, .value = 9, .until_ms = 70},
                     d = {.is_due = beyond_five, .value = 9, .until_ms = 1};
    assert_int_equal(ring_waits_add(w, &a, NULL), 0);
    assert_int_equal(ring_waits_add(w, &b, NULL), 0);
    assert_int_equal(ring_waits_add(w, &c, NULL), 0);
    assert_int_equal(ring_waits_add(w, &d, NULL), E_OVERLOAD);
    assert_int_equal(ring_waits_next_ms(w, 1000), 50);
    assert_ptr_equal(ring_waits_take(w, 10), &a);
    assert_null(ring_waits_take(w, 49));
    assert_ptr_equal(ring_waits_take(w, 50), &b);
    assert_null(ring_waits_take(w, 69));
    assert_int_equal(ring_waits_add(w, &d, NULL), 0);
    assert_ptr_equal(ring_waits_take(w, 69), &d);
    assert_int_equal(ring_waits_next_ms(w, 1000), 70);
    ring_waits_stop(w);
    assert_int_equal(ring_waits_add(w, &a, NULL), E_NOT_READY);
    assert_ptr_equal(ring_waits_take(w, 0), &c);
    assert_null(ring_waits_take(w, 1000));
    assert_int_equal(ring_waits_next_ms(w, 1000), 1000);
    ring_waits_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_due_ones_are_taken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
