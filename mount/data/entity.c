#include "mount/data/entity.h"

#include <stdlib.h>

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
    free(e);
}
