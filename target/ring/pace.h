/* When the next step of a ring is due (rings.h).  Pure; the caller has the lock.
 *
 *   nothing to report   one heartbeat after the last step
 *   dirty               one interval after it: there is something to report
 *   steps fail          dirty, and the interval doubles with each one in a row, up to a heartbeat
 *   the map changes     dirty, and the failures do not count: they may be those of a lost keeper */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ring_pace {
    bool dirty;
    unsigned failures; /* of steps, in a row */
    uint64_t stepped_ms;
};

/* There is something to report. */
void ring_pace_wake(struct ring_pace *p);
/* Another target may be the keeper by now: it knows nothing of this one's lanes. */
void ring_pace_map_changed(struct ring_pace *p);
void ring_pace_begin(struct ring_pace *p, uint64_t now_ms);
/* again: the step failed, or did not do all, so that another one is wanted. */
void ring_pace_end(struct ring_pace *p, bool failed, bool again);
uint64_t ring_pace_due_ms(const struct ring_pace *p, uint64_t interval_ms, uint64_t heartbeat_ms);
