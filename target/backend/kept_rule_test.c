/* When it is used, and who asks; how early, and how soon again. */
#include "target/backend/kept_rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { MINUTE = 60 * 1000, HOUR = 60 * MINUTE };

static enum kept_move move_at(const struct kept_times *t, int64_t now_ms)
{
    return kept_rule_move(t, &(struct kept_case){.now_ms = now_ms});
}

static void who_asks_and_who_waits(void **unused)
{
    (void)unused;
    const struct kept_times none = {.is_there = false, .renew_ms = 100, .end_ms = 200};
    const struct kept_times one = {.is_there = true, .renew_ms = 100, .end_ms = 200};
    static const struct {
        int64_t now_ms;
        bool is_there, asking, refused;
        enum kept_move move;
    } rows[] = {
        {0, false, false, false, KEPT_ASK},    {0, false, true, false, KEPT_WAIT},
        {99, true, false, false, KEPT_USE},    {99, true, true, false, KEPT_USE},
        {100, true, false, false, KEPT_RENEW}, {100, true, true, false, KEPT_USE},
        {199, true, false, false, KEPT_RENEW}, {199, true, true, false, KEPT_USE},
        {200, true, false, false, KEPT_ASK},   {200, true, true, false, KEPT_WAIT},
        {-900, true, false, false, KEPT_USE},  {99, true, false, true, KEPT_ASK},
        {99, true, true, true, KEPT_WAIT},     {100, true, false, true, KEPT_ASK},
        {200, true, true, true, KEPT_WAIT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct kept_case c = {
            .now_ms = rows[i].now_ms, .asking = rows[i].asking, .refused = rows[i].refused};
        assert_int_equal(kept_rule_move(rows[i].is_there ? &one : &none, &c), rows[i].move);
    }
}

/* Who has none: nobody waits then, and one asks after the pause.  Others use what holds. */
static void after_a_failure(void **unused)
{
    (void)unused;
    struct kept_times none = {.is_there = false};
    struct kept_times one = {.is_there = true, .renew_ms = 50000, .end_ms = 60000};
    kept_rule_failed(&none, 1000);
    kept_rule_failed(&one, 1000);
    static const struct {
        int64_t now_ms, pause_ms;
        bool is_there, asking, refused;
        enum kept_move move;
    } rows[] = {
        {1000, 500, false, false, false, KEPT_FAIL}, {1499, 500, false, false, false, KEPT_FAIL},
        {1500, 500, false, false, false, KEPT_ASK},  {1500, 500, false, true, false, KEPT_FAIL},
        {1499, 500, true, false, true, KEPT_FAIL},   {1500, 500, true, false, true, KEPT_ASK},
        {1500, 500, true, true, true, KEPT_FAIL},    {1499, 500, true, false, false, KEPT_USE},
        {60000, 500, true, true, false, KEPT_FAIL},  {1000, 0, false, false, false, KEPT_ASK},
        {1000, 0, false, true, false, KEPT_FAIL},    {999, 500, false, false, false, KEPT_ASK},
        {-HOUR, 500, false, false, false, KEPT_ASK},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct kept_case c = {.now_ms = rows[i].now_ms,
                                    .pause_ms = rows[i].pause_ms,
                                    .asking = rows[i].asking,
                                    .refused = rows[i].refused};
        assert_int_equal(kept_rule_move(rows[i].is_there ? &one : &none, &c), rows[i].move);
    }
}

static void the_pause_doubles(void **unused)
{
    (void)unused;
    static const struct {
        int64_t first_ms, pauses_ms[6];
    } rows[] = {
        {5000, {5000, 10000, 20000, 40000, MINUTE, MINUTE}},
        {1, {1, 2, 4, 8, 16, 32}},
        {HOUR, {HOUR, HOUR, HOUR, HOUR, HOUR, HOUR}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kept_times t = {.is_there = false};
        struct kept_case c = {.now_ms = 1000, .pause_ms = rows[i].first_ms};
        for (size_t j = 0; j < 6; j++) {
            kept_rule_failed(&t, c.now_ms);
            c.now_ms += rows[i].pauses_ms[j] - 1;
            assert_int_equal(kept_rule_move(&t, &c), KEPT_FAIL);
            c.now_ms++;
            assert_int_equal(kept_rule_move(&t, &c), KEPT_ASK);
        }
        kept_rule_got(&t, c.now_ms, c.now_ms, 0); /* the next failure is the first */
        assert_int_equal(kept_rule_move(&t, &c), KEPT_ASK);
        kept_rule_failed(&t, c.now_ms);
        c.now_ms += rows[i].first_ms;
        assert_int_equal(kept_rule_move(&t, &c), KEPT_ASK);
    }
}

/* Then all wait again for who asks. */
static void what_was_long_ago_is_forgotten(void **unused)
{
    (void)unused;
    static const struct {
        unsigned failures;
        int64_t pause_ms, later_ms;
        enum kept_move move; /* of another one */
    } rows[] = {
        {1, 5000, 5000, KEPT_FAIL},
        {1, 5000, 5000 + MINUTE - 1, KEPT_FAIL},
        {1, 5000, 5000 + MINUTE, KEPT_WAIT},
        {2, 5000, 10000 + MINUTE - 1, KEPT_FAIL},
        {2, 5000, 10000 + MINUTE, KEPT_WAIT},
        {1, 0, MINUTE - 1, KEPT_FAIL},
        {1, 0, MINUTE, KEPT_WAIT},
        {1, 5000, -1, KEPT_WAIT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kept_times t = {.is_there = false};
        struct kept_case c = {.now_ms = 1000 + rows[i].later_ms, .pause_ms = rows[i].pause_ms};
        for (unsigned j = 0; j < rows[i].failures; j++)
            kept_rule_failed(&t, 1000);
        assert_int_equal(kept_rule_move(&t, &c), KEPT_ASK);
        kept_rule_begins(&t, &c);
        c.asking = true;
        assert_int_equal(kept_rule_move(&t, &c), rows[i].move);
        c.now_ms += HOUR; /* the question takes long */
        assert_int_equal(kept_rule_move(&t, &c), rows[i].move);
    }
}

/* It is what there is. */
static void a_new_one_that_is_refused(void **unused)
{
    (void)unused;
    struct kept_times t;
    kept_rule_got(&t, 1000, HOUR, 0);
    struct kept_case c = {.now_ms = 1499, .pause_ms = 500, .refused = true};
    assert_int_equal(kept_rule_move(&t, &c), KEPT_USE);
    c.asking = true;
    assert_int_equal(kept_rule_move(&t, &c), KEPT_USE);
    c.now_ms = 1500;
    assert_int_equal(kept_rule_move(&t, &c), KEPT_WAIT);
    c.asking = false;
    assert_int_equal(kept_rule_move(&t, &c), KEPT_ASK);
    c.now_ms = 999; /* the clock was set back */
    assert_int_equal(kept_rule_move(&t, &c), KEPT_ASK);
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

static void a_renewal_that_fails_is_put_off(void **unused)
{
    (void)unused;
    struct kept_times t;
    kept_rule_got(&t, 0, HOUR, 0);
    kept_rule_not_renewed(&t, t.renew_ms, 0);
    assert_int_equal(t.renew_ms, 56 * MINUTE);
    assert_int_equal(t.end_ms, HOUR);
    kept_rule_not_renewed(&t, HOUR - 500, UINT64_MAX); /* not again at once */
    assert_int_equal(t.renew_ms, HOUR + 500);
    assert_int_equal(move_at(&t, HOUR), KEPT_ASK);
    const int64_t before = t.renew_ms;
    kept_rule_not_renewed(&t, 2 * HOUR, 0);
    assert_int_equal(t.renew_ms, before);
    struct kept_times none = {.is_there = false};
    kept_rule_not_renewed(&none, 1, 0);
    assert_int_equal(none.renew_ms, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_asks_and_who_waits),
        cmocka_unit_test(after_a_failure),
        cmocka_unit_test(the_pause_doubles),
        cmocka_unit_test(what_was_long_ago_is_forgotten),
        cmocka_unit_test(a_new_one_that_is_refused),
        cmocka_unit_test(how_early),
        cmocka_unit_test(a_renewal_that_fails_is_put_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
