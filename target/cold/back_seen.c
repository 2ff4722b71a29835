#include "target/cold/back_seen.h"

#include "cluster/backend.h"
#include "cluster/state.h"
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

struct back_seen back_seen_of(const struct cluster_state *s, uint64_t roster, bool settled)
{
    return (struct back_seen){.term = s->term,
                              .buckets = hash_buckets(&s->bmd),
                              .placed = s->smap.placed,
                              .roster = roster,
                              .settled = settled};
}

bool back_seen_is_same(const struct back_seen *a, const struct back_seen *b)
{
    return a->term == b->term && a->buckets == b->buckets && a->placed == b->placed &&
           a->roster == b->roster && a->settled == b->settled;
}
