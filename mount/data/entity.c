#include "mount/data/entity.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

struct entity *entity_new(const char *key, const char *etag, const char *checksum, uint64_t size)
{
    struct entity *e = xcalloc(1, sizeof *e);
    *e = (struct entity){
        .key = xstrdup(key),
        .etag = xstrdup(etag),
        .checksum = xstrdup(checksum),
        .size = size,
        .refs = 1,
    };
    return e;
}

size_t entity_part(const struct entity *e)
{
    return e->part > 0 ? e->part : ENTITY_BLOCK;
}

size_t entity_sums(const struct entity *e)
{
    const size_t part = entity_part(e);
    return (size_t)((e->size + part - 1) / part);
}

void entity_set_sums(struct entity *e, const uint64_t *sums)
{
    const size_t count = entity_sums(e);
    free(e->sums);
    e->sums = xcalloc(count + 1, sizeof *e->sums);
    if (count > 0)
        memcpy(e->sums, sums, count * sizeof *sums);
}

struct entity *entity_ref(struct entity *e)
{
    __atomic_add_fetch(&e->refs, 1, __ATOMIC_RELAXED);
    return e;
}

void entity_unref(struct entity *e)
{
    if (e == NULL || __atomic_sub_fetch(&e->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    free(e->key);
    free(e->etag);
    free(e->checksum);
    free(e->sums);
    free(e);
}
