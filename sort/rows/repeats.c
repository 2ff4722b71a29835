#include "sort/rows/repeats.h"

#include <stdint.h>
#include <xxhash.h>

#include "common/mem.h"
#include "common/rng.h"

#define SLOTS_FIRST 1024

struct repeats {
    XXH128_hash_t *slots; /* all zero: free */
    size_t mask;
    size_t used;
    size_t max;
    uint64_t seed;
};

struct repeats *repeats_new(size_t max_names)
{
    struct repeats *r = xcalloc(1, sizeof *r);
    r->max = max_names;
    r->slots = xcalloc(SLOTS_FIRST, sizeof *r->slots);
    r->mask = SLOTS_FIRST - 1;
    random_bytes(&r->seed, sizeof r->seed);
    return r;
}

void repeats_free(struct repeats *r)
{
    if (r == NULL)
        return;
    free(r->slots);
    free(r);
}

static XXH128_hash_t *slot_of(struct repeats *r, XXH128_hash_t hash)
{
    size_t i = hash.low64 & r->mask;
    while ((r->slots[i].low64 | r->slots[i].high64) != 0 && !XXH128_isEqual(r->slots[i], hash))
        i = (i + 1) & r->mask;
    return &r->slots[i];
}

static void repeats_grow(struct repeats *r)
{
    XXH128_hash_t *old = r->slots;
    size_t count = r->mask + 1;
    r->slots = xcalloc(2 * count, sizeof *r->slots);
    r->mask = 2 * count - 1;
    for (size_t i = 0; i < count; i++) {
        if ((old[i].low64 | old[i].high64) != 0)
            *slot_of(r, old[i]) = old[i];
    }
    free(old);
}

enum repeats_answer repeats_add(struct repeats *r, const char *name, size_t len)
{
    XXH128_hash_t hash = XXH3_128bits_withSeed(name, len, r->seed);
    hash.high64 |= 1; /* never the free slot's value */
    XXH128_hash_t *slot = slot_of(r, hash);
    if (XXH128_isEqual(*slot, hash))
        return REPEATS_SEEN;
    if (r->used >= r->max)
        return REPEATS_FULL;
    *slot = hash;
    r->used++;
    if (4 * r->used > 3 * r->mask)
        repeats_grow(r);
    return REPEATS_NEW;
}

void repeats_clear(struct repeats *r)
{
    /* A set that one large shard has grown would be costly to clear for every small one after it.
     */
    if (r->mask + 1 > SLOTS_FIRST && r->used < (r->mask + 1) / 8) {
        free(r->slots);
        r->slots = xcalloc(SLOTS_FIRST, sizeof *r->slots);
        r->mask = SLOTS_FIRST - 1;
    } else {
        memset(r->slots, 0, (r->mask + 1) * sizeof *r->slots);
    }
    r->used = 0;
}
