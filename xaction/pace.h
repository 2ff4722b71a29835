/* How fast a job may go: so many bytes a second, whatever the number of its threads.  Pure: who
 * calls waits, and tells the time.
 *
 * What is taken is paid for afterwards, so that a piece may be larger than a second's share; who
 * was idle has saved nothing.  What is owed is owed in bytes: the rate may be changed at any time.
 */
#pragma once

#include <stdint.h>

struct pace {
    uint64_t rate_bytes_s; /* 0: no limit */
    double owed_bytes;     /* taken, and not paid for … */
    uint64_t owed_ms;      /* … at this time */
};

/* Takes bytes, or none; how long to wait before the next are taken.  One thread at a time. */
uint64_t pace_take(struct pace *p, uint64_t bytes, uint64_t now_ms);
