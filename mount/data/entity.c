#include "mount/data/entity.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/mem.h"

#define OF_SUMS "sums:"

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

uint64_t entity_sum(const struct entity *e)
{
    return XXH3_64bits(e->sums, entity_sums(e) * sizeof *e->sums);
}

bool entity_compare(const struct entity *e, uint64_t offset, const void *data, uint64_t length)
{
    const size_t part = entity_part(e);
    const uint64_t end = offset + length;
    for (uint64_t i = (offset + part - 1) / part; i < entity_sums(e); i++) {
        const uint64_t at = i * part;
        const uint64_t next = e->size - at < part ? e->size : at + part;
        if (next > end)
            break;
        if (XXH3_64bits((const char *)data + (at - offset), (size_t)(next - at)) != e->sums[i])
            return false;
    }
    return true;
}

char *entity_sums_text(const struct entity *e)
{
    return xprintf(OF_SUMS "%016" PRIx64, entity_sum(e));
}

const char *entity_version(const char *etag, const char *checksum)
{
    if (etag[0] == '"')
        return etag;
    return strncmp(checksum, OF_SUMS, strlen(OF_SUMS)) == 0 ? checksum : NULL;
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
