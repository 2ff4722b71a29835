/* How long to wait before something that failed is tried again.  Pure: the caller counts the
 * failures, waits, and draws the random number.
 *
 *   after the 1st, 2nd, 3rd, … failure in a row:   first, 2 first, 4 first, … at most `max`
 *
 * Callers that failed together must not come back together: backoff_jitter() takes a random part
 * of the upper half away.  A wait that one thread has for itself needs no jitter. */
#pragma once

#include <stdint.h>

struct backoff {
    uint64_t first_ms;
    uint64_t max_ms; /* also where first_ms is more */
};

/* failures: in a row; 0 counts as 1. */
uint64_t backoff_ms(const struct backoff *b, unsigned failures);
/* Between half of `ms` and all of it.  luck: any number. */
uint64_t backoff_jitter(uint64_t ms, uint64_t luck);
