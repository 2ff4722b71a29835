#include "api/retry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const struct retry_policy policy = {
    .attempts = 5, .budget_ms = 10000, .base_ms = 100, .cap_ms = 1000};

static bool ask(struct retry_state *s, struct retry_question q, uint64_t *wait)
{
    return retry_next(&policy, s, &q, wait);
}

static void what_may_be_repeated(void **state)
{
    (void)state;
    static const struct {
        enum retry_outcome outcome;
        bool harmless, again;
    } rows[] = {
        {RETRY_NEVER, true, false},   {RETRY_NEVER, false, false}, {RETRY_UNSENT, false, true},
        {RETRY_REFUSED, false, true}, {RETRY_BROKEN, true, true},  {RETRY_BROKEN, false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct retry_state s = {0};
        uint64_t wait;
        const struct retry_question q = {.outcome = rows[i].outcome,
                                         .twice_is_harmless = rows[i].harmless};
        assert_int_equal(ask(&s, q, &wait), rows[i].again);
    }
}

static void pauses_grow_to_a_cap(void **state)
{
    (void)state;
    static const uint64_t most[] = {100, 200, 400, 800, 1000, 1000};
    const struct retry_policy p = {
        .attempts = 100, .budget_ms = 1000000, .base_ms = 100, .cap_ms = 1000};
    for (uint64_t random = 0; random < 3000; random += 7) {
        struct retry_state s = {0};
        for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
            uint64_t wait;
            const struct retry_question q = {.outcome = RETRY_REFUSED, .random = random};
            assert_true(retry_next(&p, &s, &q, &wait));
            assert_in_range(wait, most[i] / 2, most[i]);
        }
    }
}

static void pauses_differ(void **state)
{
    (void)state;
    uint64_t least = UINT64_MAX, most = 0;
    for (uint64_t random = 0; random < 1000; random++) {
        struct retry_state s = {0};
        uint64_t wait;
        const struct retry_question q = {.outcome = RETRY_REFUSED, .random = random};
        assert_true(ask(&s, q, &wait));
        least = wait < least ? wait : least;
        most = wait > most ? wait : most;
    }
    assert_int_equal(least, 50);
    assert_int_equal(most, 100);
}

static void the_server_may_ask_for_time(void **state)
{
    (void)state;
    for (uint64_t random = 0; random < 5000; random += 11) {
        struct retry_state s = {0};
        uint64_t wait;
        const struct retry_question q = {
            .outcome = RETRY_REFUSED, .retry_after_ms = 3000, .random = random};
        assert_true(ask(&s, q, &wait));
        assert_in_range(wait, 3000, 3750);
    }
}

/* Nodes ask for a second whatever is wrong: the pauses grow nevertheless. */
static void a_server_that_asks_for_little_time_gets_more(void **state)
{
    (void)state;
    const struct retry_question q = {.outcome = RETRY_REFUSED, .retry_after_ms = 110};
    static const uint64_t wanted[] = {110, 200, 400, 800, 0};
    struct retry_state s = {0};
    uint64_t wait;
    for (unsigned i = 0; wanted[i] > 0; i++) {
        assert_true(ask(&s, q, &wait));
        assert_in_range(wait, wanted[i], wanted[i] + wanted[i] / 4);
    }
}

static void attempts_are_bounded(void **state)
{
    (void)state;
    struct retry_state s = {0};
    const struct retry_question q = {.outcome = RETRY_UNSENT};
    uint64_t wait;
    for (unsigned i = 1; i < policy.attempts; i++)
        assert_true(ask(&s, q, &wait));
    assert_false(ask(&s, q, &wait));
}

static void time_is_bounded(void **state)
{
    (void)state;
    uint64_t wait;
    struct retry_question q = {.outcome = RETRY_REFUSED, .now_ms = 9000};
    struct retry_state s = {0};
    assert_true(ask(&s, q, &wait)); /* begins at 9050 */
    s = (struct retry_state){0};
    q.now_ms = 9951;
    assert_false(ask(&s, q, &wait));
    s = (struct retry_state){.since_ms = 5000};
    assert_true(ask(&s, q, &wait));
    s = (struct retry_state){0};
    q.now_ms = 0;
    q.retry_after_ms = 10001; /* more than the budget: no use in waiting */
    assert_false(ask(&s, q, &wait));
}

static void a_round_of_endpoints_is_one_attempt(void **state)
{
    (void)state;
    struct retry_state s = {0};
    uint64_t wait = 1;
    const struct retry_question other = {.outcome = RETRY_UNSENT, .other_endpoint = true};
    const struct retry_question last = {.outcome = RETRY_UNSENT};
    for (int i = 0; i < 100; i++) {
        assert_true(ask(&s, other, &wait));
        assert_int_equal(wait, 0);
    }
    for (unsigned i = 1; i < policy.attempts; i++)
        assert_true(ask(&s, last, &wait));
    assert_false(ask(&s, last, &wait));
    /* An endpoint that refused is not passed over: the next would say the same. */
    s = (struct retry_state){0};
    const struct retry_question refused = {.outcome = RETRY_REFUSED, .other_endpoint = true};
    assert_true(ask(&s, refused, &wait));
    assert_true(wait > 0);
}

static void progress_begins_anew(void **state)
{
    (void)state;
    struct retry_state s = {0};
    const struct retry_question q = {
        .outcome = RETRY_BROKEN, .twice_is_harmless = true, .now_ms = 50000};
    uint64_t wait;
    for (int i = 0; i < 50; i++) {
        retry_progress(&s, 50000);
        assert_true(ask(&s, q, &wait));
        assert_in_range(wait, 50, 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_may_be_repeated),
        cmocka_unit_test(pauses_grow_to_a_cap),
        cmocka_unit_test(pauses_differ),
        cmocka_unit_test(the_server_may_ask_for_time),
        cmocka_unit_test(a_server_that_asks_for_little_time_gets_more),
        cmocka_unit_test(attempts_are_bounded),
        cmocka_unit_test(time_is_bounded),
        cmocka_unit_test(a_round_of_endpoints_is_one_attempt),
        cmocka_unit_test(progress_begins_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
