#include "target/backend/kept_rule.h"

#include "common/backoff.h"

enum {
    EARLY_MS = 5 * 60 * 1000,
    PUT_OFF_MAX_MS = 60 * 1000, /* of a renewal that failed */
    PUT_OFF_MIN_MS = 1000,
    PAUSE_MAX_MS = 60 * 1000, /* or the first one, where that is longer */
    MEMORY_MS = 60 * 1000,    /* after the pause */
};

bool kept_rule_holds(const struct kept_times *t, int64_t now_ms)
{
    return t->is_there && now_ms < t->end_ms;
}

/* A clock that was set back ends what lasts so long. */
static bool is_within(int64_t from_ms, int64_t for_ms, int64_t now_ms)
{
    return now_ms >= from_ms && now_ms - from_ms < for_ms;
}

static int64_t pause_after(unsigned failures, int64_t first_ms)
{
    uint64_t first = (uint64_t)first_ms;
    const struct backoff rule = {.first_ms = first,
                                 .max_ms = first > PAUSE_MAX_MS ? first : PAUSE_MAX_MS};
    return (int64_t)backoff_ms(&rule, failures);
}

enum kept_move kept_rule_move(const struct kept_times *t, const struct kept_case *c)
{
    const bool is_new = is_within(t->got_ms, c->pause_ms, c->now_ms);
    const bool is_usable = kept_rule_holds(t, c->now_ms) && (!c->refused || is_new);
    const bool rests =
        is_within(t->failed_ms, pause_after(t->failures, c->pause_ms), c->now_ms) || c->asking;
    if (is_usable)
        return c->asking || c->now_ms < t->renew_ms ? KEPT_USE : KEPT_RENEW;
    if (t->failures > 0 && rests)
        return KEPT_FAIL;
    return c->asking ? KEPT_WAIT : KEPT_ASK;
}

/* The half of what is left of it, at most so much, and cut by a random half. */
static int64_t part_of(int64_t left_ms, int64_t most_ms, uint64_t luck)
{
    int64_t part = left_ms / 2 < most_ms ? left_ms / 2 : most_ms;
    return part - (int64_t)(luck % ((uint64_t)part / 2 + 1));
}

void kept_rule_got(struct kept_times *t, int64_t now_ms, int64_t end_ms, uint64_t luck)
{
    const int64_t left_ms = end_ms > now_ms ? end_ms - now_ms : 0;
    *t = (struct kept_times){.is_there = true,
                             .got_ms = now_ms,
                             .renew_ms = end_ms - part_of(left_ms, EARLY_MS, luck),
                             .end_ms = end_ms};
}

void kept_rule_not_renewed(struct kept_times *t, int64_t now_ms, uint64_t luck)
{
    if (!kept_rule_holds(t, now_ms))
        return;
    const int64_t put_off_ms = part_of(t->end_ms - now_ms, PUT_OFF_MAX_MS, luck);
    t->renew_ms = now_ms + (put_off_ms > PUT_OFF_MIN_MS ? put_off_ms : PUT_OFF_MIN_MS);
}

void kept_rule_begins(struct kept_times *t, const struct kept_case *c)
{
    if (!is_within(t->failed_ms, pause_after(t->failures, c->pause_ms) + MEMORY_MS, c->now_ms))
        t->failures = 0;
}

void kept_rule_failed(struct kept_times *t, int64_t now_ms)
{
    t->failures += t->failures < UINT32_MAX;
    t->failed_ms = now_ms;
}
