/* Which objects go when room is wanted: those that were used longest ago, as few as are enough.
 * Pure.
 *
 *   new(need) ─▶ add … ─▶ finish: the oldest first
 *
 * Of what is added only the oldest are kept whose sizes reach the need, and never more than a
 * number of them, so that a walk over millions takes little memory. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"

struct lru_item {
    int64_t used_s; /* when it was used last, Unix time */
    uint64_t size;
    uint64_t bucket_id;
    char *name;
};

struct lru_pick;

struct lru_pick *lru_pick_new(uint64_t need_bytes, size_t count_max);
void lru_pick_free(struct lru_pick *p);
DEFINE_CLEANUP(struct lru_pick, lru_pick_free);
void lru_pick_add(struct lru_pick *p, int64_t used_s, uint64_t size, uint64_t bucket_id,
                  const char *name);
/* Sorted, the oldest first; they are `p`'s. */
const struct lru_item *lru_pick_finish(struct lru_pick *p, size_t *count);
