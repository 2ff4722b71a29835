#include "target/cold/scan_stamp.h"

#include "cluster/props/backend.h"
#include "cluster/documents/state.h"
#include "hrw/hrw.h"

/* The same in any order. */
static uint64_t hash_buckets(const struct bmd *bmd)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < bmd->count; i++) {
        const struct bucket *b = &bmd->buckets[i];
        if (b->props.backend != NULL && backend_is_written(b->props.backend))
            sum += hrw_key(0, &b->id, sizeof b->id);
    }
    return sum;
}

struct scan_stamp scan_stamp_of(const struct cluster_state *s, uint64_t roster, bool settled)
{
    return (struct scan_stamp){.term = s->term,
                               .buckets = hash_buckets(&s->bmd),
                               .placed = s->smap.placed,
                               .roster = roster,
                               .settled = settled};
}

bool scan_stamp_is_same(const struct scan_stamp *a, const struct scan_stamp *b)
{
    return a->term == b->term && a->buckets == b->buckets && a->placed == b->placed &&
           a->roster == b->roster && a->settled == b->settled;
}
