#include "target/slices/sweep_timer.h"

void sweep_timer_begin(struct sweep_timer *t, uint64_t interval_ms, uint64_t grace_ms,
                       uint64_t now_ms)
{
    *t = (struct sweep_timer){.interval_ms = interval_ms,
                              .grace_ms = grace_ms,
                              .all_ms = now_ms + interval_ms,
                              .since_ms = EC_TURN_NONE};
}

void sweep_timer_ask(struct sweep_timer *t, int64_t since_ms, uint64_t now_ms)
{
    if (since_ms < t->since_ms)
        t->since_ms = since_ms;
    t->again_ms = now_ms + t->grace_ms;
    t->pause_ms = t->grace_ms;
}

static uint64_t next_ms(const struct sweep_timer *t)
{
    return t->since_ms != EC_TURN_NONE && t->again_ms < t->all_ms ? t->again_ms : t->all_ms;
}

uint64_t sweep_timer_wait(const struct sweep_timer *t, uint64_t now_ms)
{
    uint64_t next = next_ms(t);
    return next > now_ms ? next - now_ms : 0;
}

int64_t sweep_timer_since(const struct sweep_timer *t, uint64_t now_ms)
{
    return now_ms >= t->all_ms ? EC_TURN_ALL : t->since_ms;
}

/* What was asked for too late for this look, at all of them, has its own. */
void sweep_timer_done(struct sweep_timer *t, int64_t since_ms, bool sure, uint64_t now_ms)
{
    bool early = since_ms == EC_TURN_ALL && t->since_ms != EC_TURN_NONE && t->again_ms > now_ms;
    if (since_ms == EC_TURN_ALL)
        t->all_ms = now_ms + t->interval_ms;
    if (early)
        return;
    if (sure || t->pause_ms > t->interval_ms)
        t->since_ms = EC_TURN_NONE;
    t->again_ms = now_ms + t->pause_ms;
    t->pause_ms *= 2;
}
