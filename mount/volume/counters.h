/* What counts for a whole volume: the next ids, and what is in use.  Their keys and bytes. */
#pragma once

#include "mount/meta/meta.h"

enum counters_ids { IDS_INODES, IDS_SLICES, IDS_SESSIONS };

static inline struct meta_key counters_next_key(enum counters_ids kind)
{
    return meta_key_point(META_NEXT, (uint64_t)kind); /* one field: the next id */
}

enum {
    USE_INODES = 0,
    USE_BYTES = 8,
    USE_INODES_LEFT = 16,
    USE_BYTES_LEFT = 24,
    USE_SIZE = 32,
};

/* Of what was damaged it wraps around, as in the engines. */
static inline int64_t counters_left(int64_t limit, int64_t used)
{
    return (int64_t)((uint64_t)limit - (uint64_t)used);
}

static inline struct meta_key counters_use_key(void)
{
    return meta_key_point(META_USE, 0);
}
