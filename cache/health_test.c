#include "cache/health.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void three_errors_in_a_minute_make_it_sick(void **state)
{
    (void)state;
    struct health h = {0};
    for (uint64_t now = 0; now < 100 * HEALTH_CLEAN_MS; now += HEALTH_CLEAN_MS / 2)
        assert_false(health_note(&h, true, now)); /* two a minute */
    h = (struct health){0};
    assert_false(health_note(&h, true, 5));
    assert_false(health_note(&h, false, 6));
    assert_false(health_note(&h, true, 7));
    assert_true(health_note(&h, true, 8));
    assert_int_equal(h.state, HEALTH_SICK);
}

static void a_sick_disk_is_tried_and_returns(void **state)
{
    (void)state;
    struct health h = {.state = HEALTH_SICK, .sick_ms = 1000, .error_ms = 1000, .tried_ms = 1000};
    unsigned tries = 0;
    for (uint64_t now = 1000; h.state == HEALTH_SICK; now++) {
        if (health_may(&h, now)) {
            health_note(&h, tries == 4, now);
            tries++;
        }
    }
    assert_int_equal(h.state, HEALTH_GOOD);
    /* The fifth try failed: a minute without error begins there. */
    assert_in_range(tries, 5 + HEALTH_CLEAN_MS / HEALTH_TRY_MS,
                    6 + HEALTH_CLEAN_MS / HEALTH_TRY_MS);
}

static void after_half_an_hour_it_is_out(void **state)
{
    (void)state;
    struct health h = {.state = HEALTH_SICK};
    uint64_t now = 0;
    for (; h.state == HEALTH_SICK; now += 100) {
        if (health_may(&h, now))
            health_note(&h, true, now);
    }
    assert_int_equal(h.state, HEALTH_OUT);
    assert_in_range(now, HEALTH_OUT_MS, HEALTH_OUT_MS + HEALTH_TRY_MS);
    assert_false(health_may(&h, UINT64_MAX));
    assert_false(health_note(&h, false, UINT64_MAX));
}

static void errors_of_the_process_are_none_of_the_disk(void **state)
{
    (void)state;
    static const int disk[] = {EIO, EUCLEAN, ETIMEDOUT, EREMOTEIO, ENXIO, ENODATA, EILSEQ};
    static const int others[] = {0,      ENOENT, EBADMSG, EMFILE, ENFILE,
                                 ENOMEM, EINTR,  EAGAIN,  EACCES, EPERM};
    for (size_t i = 0; i < sizeof disk / sizeof *disk; i++)
        assert_true(health_is_of_disk(-disk[i]));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(health_is_of_disk(-others[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_errors_in_a_minute_make_it_sick),
        cmocka_unit_test(a_sick_disk_is_tried_and_returns),
        cmocka_unit_test(after_half_an_hour_it_is_out),
        cmocka_unit_test(errors_of_the_process_are_none_of_the_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
