#include "mount/volfs/cached.h"

#include <stdlib.h>

#include "common/mem.h"
#include "mount/group/reader.h"
#include "mount/volfs/objects.h"

/* ---- layers ---- */

static int put(void *context, const char *key, const void *data, size_t size)
{
    struct cached *c = context;
    uint32_t count;
    int rc = c->store.put(c->store.context, key, data, size);
    if (rc != 0 || c->tiers.cache == NULL)
        return rc;
    _cleanup_free_ uint64_t *sums = objects_sums(data, size, &count);
    struct entity *e = entity_new(key, "", "", size);
    entity_set_sums(e, sums);
    tiers_put(&c->tiers, e, data);
    entity_unref(e);
    return 0;
}

static int removed(void *context, const char *key)
{
    struct cached *c = context;
    return c->store.remove(c->store.context, key);
}

int cached_open(struct cached *c, const struct cache_options *options, const char *volume,
                const struct volfs_store *store, struct error *err)
{
    struct cache *cache = NULL;
    int rc = options->directories != NULL ? cache_open(options, &cache, err) : 0;
    if (rc != 0)
        return rc;
    struct data_store below = store->reads;
    if (store->group != NULL)
        below = (struct data_store){.context = store->group, .fetch = group_reader_fetch};
    *c = (struct cached){
        .tiers = {.cache = cache, .scope = xstrdup(volume), .store = below},
        .compared = {.from = {.context = &c->tiers, .fetch = tiers_fetch},
                     .again = store->reads,
                     .differs = tiers_differ},
        .from_below = {.from = below, .again = store->reads},
        .store = *store,
    };
    c->warming = c->tiers;
    c->warming.store = (struct data_store){.context = &c->from_below, .fetch = sums_fetch};
    return 0;
}

void cached_close(struct cached *c)
{
    cache_close(c->tiers.cache);
    free(c->tiers.scope);
}

struct data_store cached_reads(struct cached *c)
{
    return (struct data_store){.context = &c->compared, .fetch = sums_fetch};
}

struct volfs_store cached_store(struct cached *c)
{
    return (struct volfs_store){
        .reads = c->store.reads, .context = c, .put = put, .remove = removed};
}
