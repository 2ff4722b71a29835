#include "target/backend/kept_rule.h"

enum {
    EARLY_MS = 5 * 60 * 1000,
    PAUSE_MAX_MS = 60 * 1000, /* after a question that failed */
    PAUSE_MIN_MS = 1000,
};

bool kept_rule_holds(const struct kept_times *t, int64_t now_ms)
{
    return t->is_there && now_ms < t->end_ms;
}

enum kept_move kept_rule_move(const struct kept_times *t, bool asking, int64_t now_ms)
{
    const bool holds = kept_rule_holds(t, now_ms);
    if (holds && (asking || now_ms < t->renew_ms))
        return KEPT_USE;
    return asking ? KEPT_WAIT : KEPT_ASK;
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
    *t = (struct kept_times){
        .is_there = true, .renew_ms = end_ms - part_of(left_ms, EARLY_MS, luck), .end_ms = end_ms};
}

void kept_rule_failed(struct kept_times *t, int64_t now_ms, uint64_t luck)
{
    if (!kept_rule_holds(t, now_ms))
        return;
    const int64_t pause_ms = part_of(t->end_ms - now_ms, PAUSE_MAX_MS, luck);
    t->renew_ms = now_ms + (pause_ms > PAUSE_MIN_MS ? pause_ms : PAUSE_MIN_MS);
}
