#include "proxy/metastore/election.h"

#include "common/error.h"

enum {
    PAUSE_MS = 50, /* after a failed attempt */
    OBSERVE_MAX_MS = 250,
};

void election_init(struct election *e, const struct election_rules *rules)
{
    *e = (struct election){.rules = *rules, .next = ELECTION_OBSERVE};
}

static uint64_t attempt_ms(const struct election *e)
{
    return e->rules.ttl_ms / 3;
}

static uint64_t lease_end_ms(const struct election_answer *a)
{
    return a->sent_ms + a->ttl_s * 1000 - a->ttl_s * 1000 / 8;
}

uint64_t election_held(const struct election *e, uint64_t now_ms)
{
    return !e->resigned && now_ms < e->until_ms ? e->elected : 0;
}

void election_resign(struct election *e)
{
    e->resigned = true;
}

void election_withdraw(struct election *e)
{
    e->rules.stands = false;
    e->resigned = true;
    if (e->rests)
        e->wake_ms = 0;
}

void election_close(struct election *e)
{
    e->closing = true;
}

/* --- what comes next ------------------------------------------------------------------------- */

static void go_on(struct election *e, enum election_call next, uint64_t at_ms)
{
    e->next = next;
    e->wake_ms = at_ms;
}

static void observe_again(struct election *e, uint64_t now_ms)
{
    uint64_t interval_ms =
        e->rules.ttl_ms / 8 < OBSERVE_MAX_MS ? e->rules.ttl_ms / 8 : OBSERVE_MAX_MS;
    e->rests = false;
    go_on(e, ELECTION_OBSERVE, now_ms + interval_ms);
}

/* The key goes with the lease.  Where this fails both end by themselves. */
static void leave(struct election *e, uint64_t now_ms)
{
    e->elected = 0;
    go_on(e, ELECTION_REVOKE, now_ms);
}

static bool waits(const struct election *e, uint64_t now_ms)
{
    bool hurries = e->closing || (e->elected != 0 && e->resigned);
    return now_ms < e->wake_ms && !hurries;
}

static struct election_step step_of(const struct election *e, uint64_t timeout_ms)
{
    return (struct election_step){.call = e->next, .timeout_ms = timeout_ms, .lease = e->lease};
}

struct election_step election_next(struct election *e, uint64_t now_ms)
{
    if (e->closing && e->lease == 0)
        return (struct election_step){.call = ELECTION_END};
    if (waits(e, now_ms))
        return (struct election_step){.call = ELECTION_WAIT, .wait_ms = e->wake_ms - now_ms};
    if (e->rests) { /* long enough */
        e->resigned = false;
        observe_again(e, now_ms);
        return election_next(e, now_ms);
    }
    if (e->next == ELECTION_STAND && e->closing)
        leave(e, now_ms);
    if (e->next != ELECTION_RENEW)
        return step_of(e, attempt_ms(e));
    if (e->closing || election_held(e, now_ms) == 0) {
        leave(e, now_ms);
        return step_of(e, attempt_ms(e));
    }
    uint64_t left = e->until_ms - now_ms;
    return step_of(e, left < attempt_ms(e) ? left : attempt_ms(e));
}

/* --- answers --------------------------------------------------------------------------------- */

static void observed(struct election *e, const struct election_answer *a, uint64_t now_ms)
{
    if (a->code != 0 || !a->nobody || e->closing) {
        observe_again(e, now_ms);
    } else if (!e->rules.stands) {
        go_on(e, ELECTION_OBSERVE, now_ms + PAUSE_MS); /* the next one is about to be elected */
    } else if (e->resigned) {
        e->rests = true;
        e->wake_ms = now_ms + e->rules.ttl_ms;
    } else {
        go_on(e, ELECTION_GRANT, now_ms);
    }
}

static void granted(struct election *e, const struct election_answer *a, uint64_t now_ms)
{
    if (a->code != 0) {
        observe_again(e, now_ms);
        return;
    }
    e->lease = a->lease;
    e->until_ms = lease_end_ms(a);
    go_on(e, ELECTION_STAND, now_ms);
}

/* An attempt in doubt may have won: it stands again, and is told so then. */
static void stood(struct election *e, const struct election_answer *a, uint64_t now_ms)
{
    if (a->code == 0 && a->elected != 0) {
        e->elected = a->elected;
        go_on(e, ELECTION_RENEW, now_ms + e->rules.ttl_ms / 4);
    } else if (a->code == E_IN_DOUBT && now_ms < e->until_ms) {
        go_on(e, ELECTION_STAND, now_ms + PAUSE_MS);
    } else {
        leave(e, now_ms);
    }
}

/* A renewal that came too late is none: somebody may have seen that the lease was over. */
static void renewed(struct election *e, const struct election_answer *a, uint64_t now_ms)
{
    bool over = a->code == E_NOT_FOUND || election_held(e, now_ms) == 0;
    if (over) {
        leave(e, now_ms);
    } else if (a->code == 0) {
        e->until_ms = lease_end_ms(a);
        go_on(e, ELECTION_RENEW, now_ms + e->rules.ttl_ms / 4);
    } else {
        go_on(e, ELECTION_RENEW, now_ms + PAUSE_MS);
    }
}

void election_answered(struct election *e, const struct election_answer *a, uint64_t now_ms)
{
    switch (e->next) {
    case ELECTION_OBSERVE:
        observed(e, a, now_ms);
        break;
    case ELECTION_GRANT:
        granted(e, a, now_ms);
        break;
    case ELECTION_STAND:
        stood(e, a, now_ms);
        break;
    case ELECTION_RENEW:
        renewed(e, a, now_ms);
        break;
    case ELECTION_REVOKE:
        e->lease = 0;
        observe_again(e, now_ms);
        break;
    case ELECTION_WAIT:
    case ELECTION_END:
        break;
    }
}

/* --- a change -------------------------------------------------------------------------------- */

enum election_outcome election_change_ended(struct election_change *c, int code,
                                            enum election_verdict verdict, bool leads,
                                            uint64_t now_ms)
{
    if (verdict == VERDICT_FINAL || (verdict == VERDICT_OVERTAKEN && !c->in_doubt))
        return CHANGE_KNOWN;
    if (verdict == VERDICT_OVERTAKEN)
        return CHANGE_IN_DOUBT;
    if (code != 0 && code != E_IN_DOUBT && !c->in_doubt)
        return CHANGE_REFUSED;
    c->in_doubt = true;
    return leads && now_ms < c->end_ms ? CHANGE_AGAIN : CHANGE_IN_DOUBT;
}
