#include "proxy/metastore/election.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "common/error.h"

enum { TTL = 2000, ATTEMPT = TTL / 3, RENEWAL = TTL / 4, INTERVAL = TTL / 8, LEASE = 7 };
enum { PAUSE = 50 };

static const struct election_rules rules = {.ttl_ms = TTL, .stands = true};

static void expect(struct election *e, uint64_t now, enum election_call call)
{
    assert_int_equal(election_next(e, now).call, call);
}

static void answer(struct election *e, uint64_t sent, uint64_t now, struct election_answer a)
{
    a.sent_ms = sent;
    election_answered(e, &a, now);
}

/* Sent at `now` and answered at once: a lease that ends at now + 1750. */
static void elect(struct election *e, uint64_t now)
{
    expect(e, now, ELECTION_OBSERVE);
    answer(e, now, now, (struct election_answer){.nobody = true});
    expect(e, now, ELECTION_GRANT);
    answer(e, now, now, (struct election_answer){.lease = LEASE, .ttl_s = 2});
    expect(e, now, ELECTION_STAND);
    answer(e, now, now, (struct election_answer){.elected = 42});
}

static void nobody_stands_against_a_primary(void **unused)
{
    (void)unused;
    struct election e;
    election_init(&e, &rules);
    expect(&e, 100, ELECTION_OBSERVE);
    answer(&e, 100, 110, (struct election_answer){.nobody = false});
    assert_int_equal(election_next(&e, 110).wait_ms, INTERVAL);
    expect(&e, 110 + INTERVAL, ELECTION_OBSERVE);
    answer(&e, 400, 400, (struct election_answer){.code = E_IN_DOUBT, .nobody = true});
    expect(&e, 400, ELECTION_WAIT);
}

static void who_is_elected_leads_while_the_lease_is_renewed(void **unused)
{
    (void)unused;
    struct election e;
    election_init(&e, &rules);
    elect(&e, 1000);
    assert_int_equal(election_held(&e, 1000), 42);
    assert_int_equal(election_next(&e, 1000).wait_ms, RENEWAL);
    struct election_step s = election_next(&e, 1000 + RENEWAL);
    assert_int_equal(s.call, ELECTION_RENEW);
    assert_int_equal(s.lease, LEASE);
    assert_int_equal(s.timeout_ms, ATTEMPT);
    answer(&e, 1500, 1600, (struct election_answer){.ttl_s = 2});
    assert_int_equal(election_held(&e, 1500 + 1749), 42);
    assert_int_equal(election_held(&e, 1500 + 1750), 0);
}

/* It counts from when it was sent, and ends an eighth early; the last attempt is cut to what is
 * left. */
static void a_lease_that_is_not_renewed_ends_before_etcd_lets_another_begin(void **unused)
{
    (void)unused;
    struct election e;
    election_init(&e, &rules);
    elect(&e, 1000);
    expect(&e, 1500, ELECTION_RENEW);
    answer(&e, 1500, 2166, (struct election_answer){.code = E_IN_DOUBT});
    expect(&e, 2166, ELECTION_WAIT);
    struct election_step s = election_next(&e, 2300);
    assert_int_equal(s.call, ELECTION_RENEW);
    assert_int_equal(s.timeout_ms, 450);
    answer(&e, 2300, 2750, (struct election_answer){.code = E_IN_DOUBT});
    assert_int_equal(election_held(&e, 2750), 0);
    expect(&e, 2750 + 50, ELECTION_REVOKE);
    assert_int_equal(e.elected, 0);
}

static void a_renewal_that_comes_too_late_is_none(void **unused)
{
    (void)unused;
    struct election e;
    election_init(&e, &rules);
    elect(&e, 1000);
    expect(&e, 1500, ELECTION_RENEW);
    answer(&e, 1500, 2760, (struct election_answer){.ttl_s = 2});
    assert_int_equal(election_held(&e, 2760), 0);
    expect(&e, 2760, ELECTION_REVOKE);
    assert_int_equal(election_held(&e, 2760), 0);
}

static void a_lease_that_etcd_has_ended_is_over(void **unused)
{
    (void)unused;
    struct election e;
    election_init(&e, &rules);
    elect(&e, 1000);
    expect(&e, 1500, ELECTION_RENEW);
    answer(&e, 1500, 1510, (struct election_answer){.code = E_NOT_FOUND});
    assert_int_equal(election_held(&e, 1510), 0);
    expect(&e, 1510, ELECTION_REVOKE);
}

static void an_attempt_in_doubt_is_made_again(void **unused)
{
    (void)unused;
    struct election e;
    election_init(&e, &rules);
    expect(&e, 0, ELECTION_OBSERVE);
    answer(&e, 0, 0, (struct election_answer){.nobody = true});
    expect(&e, 0, ELECTION_GRANT);
    answer(&e, 0, 0, (struct election_answer){.lease = LEASE, .ttl_s = 2});
    expect(&e, 0, ELECTION_STAND);
    answer(&e, 0, 600, (struct election_answer){.code = E_IN_DOUBT});
    expect(&e, 650, ELECTION_STAND);
    answer(&e, 650, 700, (struct election_answer){.elected = 42});
    assert_int_equal(election_held(&e, 700), 42);
    assert_int_equal(election_held(&e, 1750), 0); /* the lease is as old as before */
}

static void who_is_not_elected_gives_the_lease_back(void **unused)
{
    (void)unused;
    struct election e;
    election_init(&e, &rules);
    expect(&e, 0, ELECTION_OBSERVE);
    answer(&e, 0, 0, (struct election_answer){.nobody = true});
    answer(&e, 0, 0, (struct election_answer){.lease = LEASE, .ttl_s = 2});
    expect(&e, 0, ELECTION_STAND);
    answer(&e, 0, 0, (struct election_answer){.elected = 0});
    struct election_step s = election_next(&e, 0);
    assert_int_equal(s.call, ELECTION_REVOKE);
    assert_int_equal(s.lease, LEASE);
    answer(&e, 0, 0, (struct election_answer){.code = E_IN_DOUBT});
    assert_int_equal(election_next(&e, 0).wait_ms, INTERVAL);
}

static void who_has_resigned_lets_the_others_go_first(void **unused)
{
    (void)unused;
    struct election e;
    election_init(&e, &rules);
    elect(&e, 1000);
    election_resign(&e);
    assert_int_equal(election_held(&e, 1001), 0);
    expect(&e, 1001, ELECTION_REVOKE);
    answer(&e, 1001, 1001, (struct election_answer){0});
    expect(&e, 1001 + INTERVAL, ELECTION_OBSERVE);
    answer(&e, 1300, 1300, (struct election_answer){.nobody = true});
    assert_int_equal(election_next(&e, 1300).wait_ms, TTL);
    expect(&e, 1300 + TTL, ELECTION_WAIT);
    elect(&e, 1300 + TTL + INTERVAL);
    assert_int_equal(election_held(&e, 1300 + TTL + INTERVAL), 42);
}

static void who_has_withdrawn_looks_on_and_stands_no_more(void **unused)
{
    (void)unused;
    struct election e;
    election_init(&e, &rules);
    elect(&e, 1000);
    election_withdraw(&e);
    assert_int_equal(election_held(&e, 1001), 0);
    expect(&e, 1001, ELECTION_REVOKE);
    answer(&e, 1001, 1001, (struct election_answer){0});
    uint64_t now = 1001 + INTERVAL;
    for (int i = 0; i < 100; i++, now += PAUSE) {
        expect(&e, now, ELECTION_OBSERVE);
        answer(&e, now, now, (struct election_answer){.nobody = true});
        assert_int_equal(election_next(&e, now).wait_ms, PAUSE);
    }
}

static void who_withdraws_does_not_wait_for_its_rest(void **unused)
{
    (void)unused;
    struct election e;
    election_init(&e, &rules);
    elect(&e, 1000);
    election_resign(&e);
    expect(&e, 1001, ELECTION_REVOKE);
    answer(&e, 1001, 1001, (struct election_answer){0});
    expect(&e, 1001 + INTERVAL, ELECTION_OBSERVE);
    answer(&e, 1300, 1300, (struct election_answer){.nobody = true});
    expect(&e, 1301, ELECTION_WAIT);
    election_withdraw(&e);
    assert_int_equal(election_next(&e, 1302).wait_ms, INTERVAL);
    expect(&e, 1302 + INTERVAL, ELECTION_OBSERVE);
}

static void who_closes_gives_the_lease_back_first(void **unused)
{
    (void)unused;
    struct election e;
    election_init(&e, &rules);
    elect(&e, 1000);
    election_close(&e);
    expect(&e, 1001, ELECTION_REVOKE);
    answer(&e, 1001, 1001, (struct election_answer){.code = E_IN_DOUBT});
    expect(&e, 1001, ELECTION_END);
    election_init(&e, &rules);
    election_close(&e);
    expect(&e, 0, ELECTION_END);
}

static void a_gateway_only_looks_on(void **unused)
{
    (void)unused;
    struct election e;
    election_init(&e, &(struct election_rules){.ttl_ms = TTL});
    expect(&e, 0, ELECTION_OBSERVE);
    answer(&e, 0, 0, (struct election_answer){.nobody = true});
    assert_int_equal(election_next(&e, 0).wait_ms, PAUSE);
    expect(&e, PAUSE, ELECTION_OBSERVE);
    answer(&e, PAUSE, PAUSE, (struct election_answer){.nobody = false});
    assert_int_equal(election_next(&e, PAUSE).wait_ms, INTERVAL);
}

static void only_a_verdict_ends_a_doubt(void **unused)
{
    (void)unused;
    static const struct {
        int code;
        enum election_verdict verdict;
        bool leads;
        uint64_t now;
        enum election_outcome first, later; /* later: an earlier attempt is in doubt */
    } rows[] = {
        {0, VERDICT_FINAL, true, 0, CHANGE_KNOWN, CHANGE_KNOWN},
        {0, VERDICT_FINAL, false, 1000, CHANGE_KNOWN, CHANGE_KNOWN},
        {0, VERDICT_OVERTAKEN, true, 0, CHANGE_KNOWN, CHANGE_IN_DOUBT},
        {E_NO_SPACE, VERDICT_NONE, true, 0, CHANGE_REFUSED, CHANGE_AGAIN},
        {E_IN_DOUBT, VERDICT_NONE, true, 999, CHANGE_AGAIN, CHANGE_AGAIN},
        {E_IN_DOUBT, VERDICT_NONE, true, 1000, CHANGE_IN_DOUBT, CHANGE_IN_DOUBT},
        {E_IN_DOUBT, VERDICT_NONE, false, 0, CHANGE_IN_DOUBT, CHANGE_IN_DOUBT},
        {0, VERDICT_NONE, true, 0, CHANGE_AGAIN,
         CHANGE_AGAIN}, /* an answer that is not understood */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct election_change first = {.end_ms = 1000};
        struct election_change later = {.end_ms = 1000, .in_doubt = true};
        assert_int_equal(election_change_ended(&first, rows[i].code, rows[i].verdict, rows[i].leads,
                                               rows[i].now),
                         rows[i].first);
        assert_int_equal(election_change_ended(&later, rows[i].code, rows[i].verdict, rows[i].leads,
                                               rows[i].now),
                         rows[i].later);
        assert_int_equal(first.in_doubt,
                         rows[i].first == CHANGE_AGAIN || rows[i].first == CHANGE_IN_DOUBT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_stands_against_a_primary),
        cmocka_unit_test(who_is_elected_leads_while_the_lease_is_renewed),
        cmocka_unit_test(a_lease_that_is_not_renewed_ends_before_etcd_lets_another_begin),
        cmocka_unit_test(a_renewal_that_comes_too_late_is_none),
        cmocka_unit_test(a_lease_that_etcd_has_ended_is_over),
        cmocka_unit_test(an_attempt_in_doubt_is_made_again),
        cmocka_unit_test(who_is_not_elected_gives_the_lease_back),
        cmocka_unit_test(who_has_resigned_lets_the_others_go_first),
        cmocka_unit_test(who_has_withdrawn_looks_on_and_stands_no_more),
        cmocka_unit_test(who_withdraws_does_not_wait_for_its_rest),
        cmocka_unit_test(who_closes_gives_the_lease_back_first),
        cmocka_unit_test(a_gateway_only_looks_on),
        cmocka_unit_test(only_a_verdict_ends_a_doubt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
