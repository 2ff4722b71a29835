#include "mount/volfs/compact.h"

#include <errno.h>
#include <stdlib.h>

#include "common/log.h"
#include "common/mem.h"
#include "mount/volfs/reading.h"
#include "mount/volfs/volfs_parts.h"

enum { AT_ONCE = 64 };

/* The bytes of a range; zeros behind the end of the file. */
static int read_range(struct volfs *v, uint64_t ino, int64_t at, uint32_t length, char *to)
{
    static const struct volfs_range never_interrupted;
    struct arena *arena = arena_new(4096);
    struct volume_extent *extents;
    size_t count = 0;
    uint64_t done = 0;
    int rc = volume_extents(v->volume, ino, at, length, arena, &extents, &count);
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = reading_extent(v, &never_interrupted, &extents[i], extents[i].length, to + done);
        done += extents[i].length;
    }
    arena_free(arena);
    return rc;
}

/* A range becomes one object; its sums are the caller's to free. */
static int store_range(struct volfs *v, uint64_t ino, int64_t at, uint32_t length,
                       struct volume_piece *piece)
{
    const struct volfs_store *store = &v->pendings.store;
    _cleanup_free_ char *data = xcalloc(1, length);
    *piece = (struct volume_piece){.at = at, .length = length, .size = length};
    int rc = read_range(v, ino, at, length, data);
    if (rc == 0)
        rc = volume_new_slice(v->volume, &piece->slice);
    if (rc != 0)
        return rc;
    _cleanup_free_ char *key = objects_key(volume_format(v->volume)->name, piece->slice, 0, length);
    piece->sums = objects_sums(data, length, &piece->sums_count);
    return store->put(store->context, key, data, length);
}

/* Objects of a plan that fails are garbage. */
static int rewrite(struct volfs *v, const struct volume_rewrite *plan)
{
    const int64_t begin = (int64_t)(plan->number * volume_format(v->volume)->chunk_bytes);
    struct volume_piece *pieces = xcalloc(plan->count, sizeof *pieces);
    int rc = 0;
    for (size_t i = 0; i < plan->count && rc == 0; i++)
        rc = store_range(v, plan->ino, begin + plan->ranges[i].at, plan->ranges[i].length,
                         &pieces[i]);
    if (rc == 0)
        rc = volume_rewrite(v->volume, plan, pieces, plan->count);
    for (size_t i = 0; i < plan->count; i++)
        free((void *)(uintptr_t)pieces[i].sums);
    free(pieces);
    return rc;
}

/* Again: a program writes to it now, or the store fails. */
static int compact_one(struct volfs *v, const struct volume_chunk *chunk, struct arena *arena)
{
    struct volume_rewrite plan;
    int rc = volume_plan(v->volume, chunk->ino, chunk->number, VOLUME_LIST_LONG, arena, &plan);
    if (rc == 0 && plan.count > 0)
        rc = rewrite(v, &plan);
    if (rc != 0 && rc != -ENOENT && rc != -ESTALE)
        log_warn("a chunk could not be stored anew", lu64("inode", chunk->ino),
                 lu64("chunk", chunk->number), li64("error", -rc));
    return volume_messy_done(v->volume, chunk, rc != 0 && rc != -ENOENT);
}

static bool ends(struct volfs *v)
{
    pthread_mutex_lock(&v->lock);
    bool ends = v->ends;
    pthread_mutex_unlock(&v->lock);
    return ends;
}

void compact_due(struct volfs *v)
{
    struct arena *arena = arena_new(4096);
    struct volume_chunk *chunks;
    size_t count = 0;
    int rc = volume_messy(v->volume, arena, AT_ONCE, &chunks, &count);
    for (size_t i = 0; i < count && rc == 0 && !ends(v); i++)
        rc = compact_one(v, &chunks[i], arena);
    arena_free(arena);
}
