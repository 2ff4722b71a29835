#include "mount/volfs/objects.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "common/mem.h"

char *objects_key(const char *volume, uint64_t slice, uint64_t block, uint64_t bytes)
{
    return xprintf("%s/b/%02x/%016llx_%llu_%llu", volume, (unsigned)(slice & 0xff),
                   (unsigned long long)slice, (unsigned long long)block, (unsigned long long)bytes);
}

bool objects_parse(const char *volume, const char *key, uint64_t *slice, uint64_t *block,
                   uint64_t *bytes)
{
    unsigned long long s, k, b;
    size_t len = strlen(volume);
    if (strncmp(key, volume, len) != 0 ||
        sscanf(key + len, "/b/%*2x/%16llx_%llu_%llu", &s, &k, &b) != 3)
        return false;
    *slice = s;
    *block = k;
    *bytes = b;
    _cleanup_free_ char *same = objects_key(volume, s, k, b);
    return strcmp(same, key) == 0;
}

uint64_t objects_bytes(uint64_t size, uint64_t block_bytes, uint64_t block)
{
    uint64_t from = block * block_bytes;
    uint64_t left = size > from ? size - from : 0;
    return left < block_bytes ? left : block_bytes;
}

uint64_t *objects_sums(const char *data, size_t size, uint32_t *count)
{
    *count = (uint32_t)((size + SLICE_SUM_BYTES - 1) / SLICE_SUM_BYTES);
    uint64_t *sums = xcalloc(*count, sizeof *sums);
    for (uint32_t i = 0; i < *count; i++) {
        size_t from = (size_t)i * SLICE_SUM_BYTES;
        sums[i] =
            XXH3_64bits(data + from, size - from < SLICE_SUM_BYTES ? size - from : SLICE_SUM_BYTES);
    }
    return sums;
}

void objects_init(struct objects *o)
{
    *o = (struct objects){0};
    pthread_mutex_init(&o->lock, NULL);
}

void objects_done(struct objects *o)
{
    for (unsigned i = 0; i < OBJECTS_ROWS; i++) {
        for (unsigned k = 0; k < OBJECTS_OF_ROW; k++)
            entity_unref(o->known[i][k].entity);
    }
    pthread_mutex_destroy(&o->lock);
}

/* The place of the block, which is the first of its row now; without an entity: it is not known. */
static struct known *place_of(struct objects *o, uint64_t slice, uint64_t block)
{
    const uint64_t name[] = {slice, block};
    struct known *row = o->known[XXH3_64bits(name, sizeof name) % OBJECTS_ROWS];
    unsigned i = 0;
    while (i < OBJECTS_OF_ROW - 1 && (row[i].slice != slice || row[i].block != block))
        i++;
    struct known k = row[i];
    if (k.slice != slice || k.block != block) {
        entity_unref(k.entity);
        k = (struct known){slice, block, NULL};
    }
    memmove(&row[1], &row[0], i * sizeof *row);
    row[0] = k;
    return &row[0];
}

struct entity *objects_entity(struct objects *o, const struct volume_format *format,
                              const struct slice_entry *e, uint64_t block)
{
    if (e->sums_count != ((uint64_t)e->size + SLICE_SUM_BYTES - 1) / SLICE_SUM_BYTES)
        return NULL;
    pthread_mutex_lock(&o->lock);
    struct known *k = place_of(o, e->slice, block);
    if (k->entity == NULL) {
        uint64_t bytes = objects_bytes(e->size, format->block_bytes, block);
        _cleanup_free_ char *key = objects_key(format->name, e->slice, block, bytes);
        k->entity = entity_new(key, "", "", bytes);
        entity_set_sums(k->entity, e->sums + block * (format->block_bytes / SLICE_SUM_BYTES));
    }
    struct entity *entity = entity_ref(k->entity);
    pthread_mutex_unlock(&o->lock);
    return entity;
}
