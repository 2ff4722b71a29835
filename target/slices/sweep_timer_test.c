#include "target/slices/sweep_timer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { INTERVAL = 1000, GRACE = 100 };

/* The looks until all are looked at for the second time, each of which takes no time; 'a': at all,
 * 's': at those since somebody asked. */
static void assert_looks(struct sweep_timer *t, uint64_t now, bool sure, const char *want)
{
    char got[64];
    size_t len = 0;
    for (unsigned all = 0; all < 2 && len + 1 < sizeof got;) {
        now += sweep_timer_wait(t, now);
        int64_t since = sweep_timer_since(t, now);
        assert_int_not_equal(since, EC_TURN_NONE);
        got[len++] = since == EC_TURN_ALL ? 'a' : 's';
        all += since == EC_TURN_ALL;
        sweep_timer_done(t, since, sure, now);
    }
    got[len] = '\0';
    assert_string_equal(got, want);
}

static struct sweep_timer begun(void)
{
    struct sweep_timer t;
    sweep_timer_begin(&t, INTERVAL, GRACE, 5000);
    return t;
}

static void all_are_looked_at_after_each_interval(void **unused)
{
    (void)unused;
    struct sweep_timer t = begun();
    assert_int_equal(sweep_timer_wait(&t, 5000), INTERVAL);
    assert_int_equal(sweep_timer_wait(&t, 5999), 1);
    assert_int_equal(sweep_timer_wait(&t, 6000), 0);
    assert_int_equal(sweep_timer_wait(&t, 9000), 0);
    assert_true(sweep_timer_since(&t, 6000) == EC_TURN_ALL);
    sweep_timer_done(&t, EC_TURN_ALL, true, 6300);
    assert_int_equal(sweep_timer_wait(&t, 6300), INTERVAL);
    assert_looks(&t, 6300, false, "aa"); /* nobody has asked: what could not be judged waits */
}

static void what_was_left_is_looked_at_when_it_is_old_enough(void **unused)
{
    (void)unused;
    struct sweep_timer t = begun();
    sweep_timer_ask(&t, 77, 5200);
    assert_int_equal(sweep_timer_wait(&t, 5200), GRACE);
    assert_int_equal(sweep_timer_wait(&t, 5300), 0);
    assert_int_equal(sweep_timer_since(&t, 5300), 77);
    assert_looks(&t, 5300, true, "saa"); /* once, where that was all */
}

static void it_is_looked_at_until_it_is_known_or_nobodys(void **unused)
{
    (void)unused;
    struct sweep_timer t = begun();
    sweep_timer_ask(&t, 77, 5010); /* at 5110, 5210, 5410, 5810: then they are among all */
    assert_looks(&t, 5010, false, "ssssasa");
    t = begun();
    sweep_timer_ask(&t, 77, 5000);
    sweep_timer_done(&t, 77, false, 5100);
    assert_int_equal(sweep_timer_wait(&t, 5100), GRACE);
    sweep_timer_done(&t, 77, true, 5200);
    assert_looks(&t, 5200, false, "aa");
}

static void who_asks_later_is_heard_too(void **unused)
{
    (void)unused;
    struct sweep_timer t = begun();
    sweep_timer_ask(&t, 77, 5000);
    sweep_timer_ask(&t, 99, 5050);
    assert_int_equal(sweep_timer_wait(&t, 5050), GRACE);
    assert_int_equal(sweep_timer_since(&t, 5150), 77); /* his, and the other's */
    sweep_timer_ask(&t, 55, 5060);
    assert_int_equal(sweep_timer_since(&t, 5160), 55);
    sweep_timer_done(&t, 55, true, 5160);
    sweep_timer_ask(&t, 99, 5170);
    assert_int_equal(sweep_timer_since(&t, 5270), 99);
    t = begun();
    sweep_timer_ask(&t, 77, 5950); /* a look at all comes before these are old enough */
    assert_looks(&t, 5950, true, "asa");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_looked_at_after_each_interval),
        cmocka_unit_test(what_was_left_is_looked_at_when_it_is_old_enough),
        cmocka_unit_test(it_is_looked_at_until_it_is_known_or_nobodys),
        cmocka_unit_test(who_asks_later_is_heard_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
