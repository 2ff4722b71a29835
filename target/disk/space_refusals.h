/* When the log says that copies are refused for lack of room: at the first one, and then once a
 * minute at most, with how many there were.  Other targets offer a full one each of its objects
 * again and again.  Any thread. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { SPACE_REFUSALS_PAUSE_MS = 60000 };

struct space_refusals { /* zeros to begin with */
    _Atomic uint64_t next_ms, count;
};

/* One more.  True: say it now, of `*count`. */
bool space_refusals_add(struct space_refusals *r, uint64_t now_ms, uint64_t *count);
