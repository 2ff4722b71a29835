/* What the names that wait for their backends (back.h) depend on, beside writes, which say so
 * themselves: when any of it has changed, the indexes are looked through.
 *
 * Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cluster_state;

struct scan_stamp {
    uint64_t term;    /* buckets may have been recovered */
    uint64_t buckets; /* which ones have a backend that is written to; that never changes of one */
    uint64_t placed;  /* owners */
    uint64_t roster;  /* mountpaths */
    bool settled;
};

struct scan_stamp scan_stamp_of(const struct cluster_state *s, uint64_t roster, bool settled);
bool scan_stamp_is_same(const struct scan_stamp *a, const struct scan_stamp *b);
