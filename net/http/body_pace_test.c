#include "net/http/body_pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct body_rate rate = {.bytes_per_s = 1024, .window_ms = 60000};

static void test_a_byte_a_minute(void **state)
{
    (void)state;
    struct body_pace p = {.runs = false};
    assert_true(body_pace_keeps(&p, &rate, 1000, 1));
    assert_true(body_pace_keeps(&p, &rate, 60999, 1));
    assert_false(body_pace_keeps(&p, &rate, 61000, 1));
}

static void test_enough(void **state)
{
    (void)state;
    struct body_pace p = {.runs = false};
    for (uint64_t s = 0; s < 600; s++)
        assert_true(body_pace_keeps(&p, &rate, 1000 * s, 1100));
    /* and then no more: one window */
    bool kept = true;
    for (uint64_t s = 600; s < 720 && kept; s++)
        kept = body_pace_keeps(&p, &rate, 1000 * s, 1);
    assert_false(kept);
}

static void test_what_the_server_does_not_take_does_not_count(void **state)
{
    (void)state;
    struct body_pace p = {.runs = false};
    assert_true(body_pace_keeps(&p, &rate, 0, 1));
    body_pace_pause(&p);
    assert_true(body_pace_keeps(&p, &rate, 600000, 1));
    assert_true(body_pace_keeps(&p, &rate, 659999, 1));
    assert_false(body_pace_keeps(&p, &rate, 660000, 1));
}

static void test_no_rate(void **state)
{
    (void)state;
    static const struct body_rate none = {.bytes_per_s = 0, .window_ms = 60000};
    struct body_pace p = {.runs = false};
    assert_true(body_pace_keeps(&p, &none, 0, 0));
    assert_true(body_pace_keeps(&p, &none, UINT64_MAX, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_byte_a_minute),
        cmocka_unit_test(test_enough),
        cmocka_unit_test(test_what_the_server_does_not_take_does_not_count),
        cmocka_unit_test(test_no_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
