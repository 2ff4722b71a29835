/* Calls of a ring that wait, and hold no thread: for the next generation (a long poll), or, with a
 * push, for room.
 *
 *   status?after=G&wait=30s ──▶ ring_waits_add() … the head is beyond G, or the time is over
 *                                                  ──▶ ring_waits_take() ──▶ a reply
 *
 * The thread of the rings (rings.h) takes those that are due: soon after a step of their ring, and
 * when the first one's time is over.  So many may wait on a target at once (ring_waits_max). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct ring;
struct ring_waits;

struct ring_wait {     /* the caller's; it stays until it is taken */
    struct ring *ring; /* the caller has a reference */
    /* Asked with this module's lock held: it may take the ring's `keep`, and try `lock`. */
    bool (*is_due)(const struct ring_wait *wait);
    uint64_t value;    /* is_due's: a generation, or bytes */
    uint64_t until_ms; /* of clock_ms(): then it is due, whatever is_due says */
    void (*reply)(void *arg);
    void *arg;
    struct ring_wait *next;
};

struct ring_waits *ring_waits_new(uint64_t max);
void ring_waits_free(struct ring_waits *w); /* none is left; NULL is fine */

/* E_OVERLOAD: as many wait as may.  E_NOT_READY: the target ends. */
int ring_waits_add(struct ring_waits *w, struct ring_wait *wait, struct error *err);
/* One that is due, out of the list; NULL: none is. */
struct ring_wait *ring_waits_take(struct ring_waits *w, uint64_t now_ms);
/* When the first one's time is over, at most `latest_ms`. */
uint64_t ring_waits_next_ms(struct ring_waits *w, uint64_t latest_ms);
/* From now on each one is due, and none is added. */
void ring_waits_stop(struct ring_waits *w);
