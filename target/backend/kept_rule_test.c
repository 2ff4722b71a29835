/* When it is used, and who asks; how early, and how soon again. */
#include "target/backend/kept_rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { MINUTE = 60 * 1000, HOUR = 60 * MINUTE };

static void who_asks_and_who_waits(void **unused)
{
    (void)unused;
    const struct kept_times none = {.is_there = false, .renew_ms = 100, .end_ms = 200};
    const struct kept_times one = {.is_there = true, .renew_ms = 100, .end_ms = 200};
    static const struct {
        int64_t now_ms;
        bool is_there, asking;
        enum kept_move move;
    } rows[] = {
        {0, false, false, KEPT_ASK},   {0, false, true, KEPT_WAIT},   {99, true, false, KEPT_USE},
        {99, true, true, KEPT_USE},    {100, true, false, KEPT_ASK},  {100, true, true, KEPT_USE},
        {199, true, false, KEPT_ASK},  {199, true, true, KEPT_USE},   {200, true, false, KEPT_ASK},
        {200, true, true, KEPT_WAIT},  {-900, true, false, KEPT_USE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(
            kept_rule_move(rows[i].is_there ? &one : &none, rows[i].asking, rows[i].now_ms),
            rows[i].move);
}

/* Between the early time and its half, whatever the luck; a short life at its half, or later. */
static void how_early(void **unused)
{
    (void)unused;
    static const struct {
        int64_t life_ms, first_ms, last_ms; /* before the end */
    } rows[] = {
        {12 * HOUR, 5 * MINUTE, 5 * MINUTE / 2},
        {10 * MINUTE, 5 * MINUTE, 5 * MINUTE / 2},
        {4 * MINUTE, 2 * MINUTE, MINUTE},
        {2000, 1000, 500},
        {1, 0, 0},
        {0, 0, 0},
    };
    static const uint64_t lucks[] = {0, 1, 149999, 150000, 150001, UINT64_MAX};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (size_t j = 0; j < sizeof lucks / sizeof lucks[0]; j++) {
            struct kept_times t;
            kept_rule_got(&t, 1000, 1000 + rows[i].life_ms, lucks[j]);
            assert_true(t.is_there);
            assert_int_equal(t.end_ms, 1000 + rows[i].life_ms);
            assert_in_range(t.end_ms - t.renew_ms, rows[i].last_ms, rows[i].first_ms);
        }
    }
    struct kept_times a, b;
    kept_rule_got(&a, 0, HOUR, 0);
    kept_rule_got(&b, 0, HOUR, 1000);
    assert_int_equal(a.end_ms - a.renew_ms, 5 * MINUTE);
    assert_int_equal(b.renew_ms - a.renew_ms, 1000);
    kept_rule_got(&a, 1000, 900, 7); /* it has ended */
    assert_false(kept_rule_holds(&a, 1000));
}

static void a_failure_puts_off(void **unused)
{
    (void)unused;
    struct kept_times t;
    kept_rule_got(&t, 0, HOUR, 0);
    kept_rule_failed(&t, t.renew_ms, 0);
    assert_int_equal(t.renew_ms, 56 * MINUTE);
    assert_int_equal(t.end_ms, HOUR);
    kept_rule_failed(&t, HOUR - 500, UINT64_MAX); /* not again at once */
    assert_int_equal(t.renew_ms, HOUR + 500);
    assert_int_equal(kept_rule_move(&t, false, HOUR), KEPT_ASK);
    const int64_t before = t.renew_ms;
    kept_rule_failed(&t, 2 * HOUR, 0);
    assert_int_equal(t.renew_ms, before);
    struct kept_times none = {.is_there = false};
    kept_rule_failed(&none, 1, 0);
    assert_int_equal(none.renew_ms, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_asks_and_who_waits),
        cmocka_unit_test(how_early),
        cmocka_unit_test(a_failure_puts_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
