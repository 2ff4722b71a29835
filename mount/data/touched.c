#include "mount/data/touched.h"

#include <stdlib.h>
#include <xxhash.h>

#include "common/mem.h"

void touched_init(struct touched *t, size_t count)
{
    *t = (struct touched){.count = count, .slots = xcalloc(count, sizeof *t->slots)};
}

void touched_done(struct touched *t)
{
    free(t->slots);
}

bool touched_again(struct touched *t, const void *entity, uint64_t index)
{
    const uint64_t block[] = {(uint64_t)(uintptr_t)entity, index};
    const uint64_t hash = XXH3_64bits(block, sizeof block) | 1;
    uint64_t *slot = &t->slots[(hash >> 1) % t->count];
    if (*slot == hash)
        return true;
    *slot = hash;
    return false;
}
