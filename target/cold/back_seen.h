/* What the names that wait for their backends (back.h) depend on, beside writes, which say so
 * themselves: when any of it has changed, the indexes are looked through.
 *
 * Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cluster_state;

struct back_seen {
    uint64_t term;    /* buckets may have been recovered */
    uint64_t buckets; /* which ones have a backend that is written to; that never changes of one */
    uint64_t placed;  /* owners */
    uint64_t roster;  /* mountpaths */
    bool settled;
};

struct back_seen back_seen_of(const struct cluster_state *s, uint64_t roster, bool settled);
bool back_seen_is_same(const struct back_seen *a, const struct back_seen *b);
