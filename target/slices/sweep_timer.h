/* When a target looks for slices that nobody knows (slices/sweep.h), and at which: at all of them
 * after each interval; where somebody has left some, at those that are not older than his, when
 * these are old enough, and then again, each time after twice as long, while of one of them nobody
 * can say whether it is known: an owner is away, or still hides what it is of.  After the interval
 * that ends: it is among all.
 *
 * Pure: `now_ms` is of clock_ms(). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sweep_timer {
    uint64_t interval_ms, grace_ms;
    uint64_t all_ms;   /* when all are looked at */
    uint64_t again_ms; /* when those of `since_ms` are, … */
    uint64_t pause_ms; /* … and how long after that once more */
    int64_t since_ms;  /* of the wall clock; EC_TURN_NONE: nobody has asked */
};

#define EC_TURN_NONE INT64_MAX
#define EC_TURN_ALL INT64_MIN

void sweep_timer_begin(struct sweep_timer *t, uint64_t interval_ms, uint64_t grace_ms,
                       uint64_t now_ms);
/* Somebody has left slices, none of them made before that. */
void sweep_timer_ask(struct sweep_timer *t, int64_t since_ms, uint64_t now_ms);
/* How long it is to the next look; 0: it is time. */
uint64_t sweep_timer_wait(const struct sweep_timer *t, uint64_t now_ms);
/* It is: older ones are passed over. */
int64_t sweep_timer_since(const struct sweep_timer *t, uint64_t now_ms);
/* Those of sweep_timer_since() were looked at, and each was known or nobody's, if `sure`. */
void sweep_timer_done(struct sweep_timer *t, int64_t since_ms, bool sure, uint64_t now_ms);
