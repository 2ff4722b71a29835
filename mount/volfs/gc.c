#include "mount/volfs/gc.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "common/mem.h"
#include "mount/volfs/objects.h"
#include "mount/volume/counters.h"
#include "mount/volume/ids.h"
#include "mount/volume/walk.h"

enum { INODES = 256 };

struct block {
    uint64_t slice, block, bytes;
    bool named;
};

struct gc {
    struct meta *m;
    struct volume_format format;
    struct gc_options options;
    uint64_t *ranges; /* first slices */
    size_t range_count, range_room;
    uint64_t next_slice;
    struct block *blocks; /* in order of slices from gc_look() on */
    size_t count, room;
    struct gc_tally tally;
    int64_t now_ms;
    uint64_t inodes[INODES]; /* files whose chunks are asked for together */
    size_t inode_count;
    struct arena *arena;
};

/* ---- what may be committed yet ---- */

static int add_range(void *context, const struct meta_row *row, struct error *err)
{
    struct gc *gc = context;
    (void)err;
    if (gc->range_count == gc->range_room) {
        gc->range_room = 2 * gc->range_room + 16;
        gc->ranges = xrealloc(gc->ranges, gc->range_room * sizeof *gc->ranges);
    }
    gc->ranges[gc->range_count++] = row->key.sub;
    return 0;
}

static int add_session(void *context, const struct meta_row *row, struct error *err)
{
    struct gc *gc = context;
    const struct walk ranges = {.m = gc->m, .visit = add_range, .context = gc};
    return walk_children(&ranges, META_RANGE, &row->key.id, 1, err);
}

/* The next number comes before the ranges: a range that is taken between is in both. */
static int read_next(struct gc *gc, struct error *err)
{
    struct meta_item item = {.ask = META_GET, .key = counters_next_key(IDS_SLICES)};
    struct meta_read r = {.arena = gc->arena, .items = &item, .count = 1};
    int rc = gc->m->ops->read(gc->m, &r, err);
    gc->next_slice = (uint64_t)meta_field(&item.value, 0);
    return rc != 0 || gc->next_slice > 0
               ? rc
               : error_set(err, E_CORRUPT, "the number of the next slice is missing");
}

int gc_new(struct meta *m, const struct volume_format *format, const struct gc_options *options,
           struct gc **out, struct error *err)
{
    struct gc *gc = xcalloc(1, sizeof *gc);
    const struct walk sessions = {.m = m, .visit = add_session, .context = gc};
    gc->m = m;
    gc->format = *format;
    gc->options = *options;
    gc->arena = arena_new(4096);
    int rc = read_next(gc, err);
    if (rc == 0)
        rc = walk_points(&sessions, META_SESSION, err);
    if (rc == 0)
        *out = gc;
    else
        gc_free(gc);
    return rc;
}

void gc_free(struct gc *gc)
{
    if (gc == NULL)
        return;
    arena_free(gc->arena);
    free(gc->ranges);
    free(gc->blocks);
    free(gc);
}

/* ---- objects ---- */

static bool may_be_committed(const struct gc *gc, uint64_t slice)
{
    bool may = slice >= gc->next_slice;
    for (size_t i = 0; i < gc->range_count && !may; i++)
        may = slice >= gc->ranges[i] && slice - gc->ranges[i] < IDS_SLICE_RANGE;
    return may;
}

void gc_object(struct gc *gc, const char *key, uint64_t bytes, int64_t modified_ms)
{
    struct block b = {0};
    gc->tally.objects++;
    gc->tally.bytes += bytes;
    if (!objects_parse(gc->format.name, key, &b.slice, &b.block, &b.bytes)) {
        gc->tally.foreign++;
    } else if (may_be_committed(gc, b.slice)) {
        gc->tally.living++;
    } else if (modified_ms > gc->options.older_ms) {
        gc->tally.young++;
    } else {
        if (gc->count == gc->room) {
            gc->room = 2 * gc->room + 256;
            gc->blocks = xrealloc(gc->blocks, gc->room * sizeof *gc->blocks);
        }
        gc->blocks[gc->count++] = b;
    }
}

/* ---- names ---- */

static int by_slice(const void *a, const void *b)
{
    const struct block *one = a, *two = b;
    return one->slice != two->slice ? (one->slice < two->slice ? -1 : 1)
                                    : (one->block < two->block ? -1 : one->block > two->block);
}

static void mark(struct gc *gc, uint64_t slice)
{
    size_t from = 0, to = gc->count;
    while (from < to) {
        size_t middle = (from + to) / 2;
        if (gc->blocks[middle].slice < slice)
            from = middle + 1;
        else
            to = middle;
    }
    for (; from < gc->count && gc->blocks[from].slice == slice; from++)
        gc->blocks[from].named = true;
}

static int mark_chunk(void *context, const struct meta_row *row, struct error *err)
{
    struct gc *gc = context;
    struct slice_list list;
    arena_reset(gc->arena);
    int rc = slices_decode(row->value.data, row->value.size, gc->format.chunk_bytes, gc->arena,
                           &list, err);
    for (size_t i = 0; rc == 0 && i < list.count; i++)
        mark(gc, list.entries[i].slice);
    return rc;
}

static int mark_files(struct gc *gc, struct error *err)
{
    const struct walk chunks = {.m = gc->m, .visit = mark_chunk, .context = gc};
    int rc = walk_children(&chunks, META_CHUNK, gc->inodes, gc->inode_count, err);
    gc->inode_count = 0;
    return rc;
}

static int mark_inode(void *context, const struct meta_row *row, struct error *err)
{
    struct gc *gc = context;
    struct attr a;
    if (!attr_decode(&row->value, &a))
        return error_set(err, E_CORRUPT, "the attribute of inode %llu has %zu bytes",
                         (unsigned long long)row->key.id, row->value.size);
    if (!S_ISREG(a.mode))
        return 0;
    gc->inodes[gc->inode_count++] = row->key.id;
    return gc->inode_count == INODES ? mark_files(gc, err) : 0;
}

static int mark_shared(void *context, const struct meta_row *row, struct error *err)
{
    (void)err;
    mark(context, row->key.id);
    return 0;
}

static int mark_queued(void *context, const struct meta_row *row, struct error *err)
{
    struct gc *gc = context;
    (void)err;
    mark(gc, row->key.sub);
    gc->tally.queued++;
    gc->tally.queued_bytes += (uint64_t)meta_field(&row->value, 0);
    gc->tally.due += row->key.id <= (uint64_t)gc->now_ms;
    return 0;
}

/* A slice in use has one entry, or a SHARED key until the commit that queues it.
 *
 *     never shared   its only entry stays where it is until that commit
 *     shared         also if a clone that this walk has passed keeps it, and its source does not
 *
 * So files are read first, then the keys, then the queue: a slice that leaves one is in a later
 * one. */
int gc_look(struct gc *gc, struct error *err)
{
    const struct walk inodes = {.m = gc->m, .visit = mark_inode, .context = gc};
    const struct walk shared = {.m = gc->m, .visit = mark_shared, .context = gc};
    const struct walk queue = {.m = gc->m, .visit = mark_queued, .context = gc};
    if (gc->count > 0)
        qsort(gc->blocks, gc->count, sizeof *gc->blocks, by_slice);
    int rc = gc->m->ops->now(gc->m, &gc->now_ms, err);
    if (rc == 0)
        rc = walk_points(&inodes, META_ATTR, err);
    if (rc == 0)
        rc = mark_files(gc, err);
    if (rc == 0)
        rc = walk_points(&shared, META_SHARED, err);
    if (rc == 0)
        rc = walk_queue(&queue, META_GARBAGE, err);
    size_t left = 0;
    for (size_t i = 0; i < gc->count && rc == 0; i++) {
        if (gc->blocks[i].named)
            continue;
        gc->tally.garbage_bytes += gc->blocks[i].bytes;
        gc->blocks[left++] = gc->blocks[i];
    }
    gc->tally.garbage = gc->count = left;
    return rc;
}

char *gc_garbage(const struct gc *gc, size_t index)
{
    const struct block *b = &gc->blocks[index];
    return index < gc->count ? objects_key(gc->format.name, b->slice, b->block, b->bytes) : NULL;
}

const struct gc_tally *gc_tally(const struct gc *gc)
{
    return &gc->tally;
}
