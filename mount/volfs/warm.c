#include "mount/volfs/warm.h"

#include <errno.h>

#include "common/log.h"
#include "mount/group/reader.h"
#include "mount/volfs/reading.h"
#include "mount/volfs/volfs_parts.h"

enum { WINDOW_CHUNKS = 64 }; /* whose lists are in memory at once */

/* Without a disk here: on those of the members. */
static int warm_members(struct cached *c, const struct reading_part *p, struct volfs_warm *w)
{
    struct group_warm g = {.offset = p->in_block, .length = p->size, .fetch = w->fetch};
    int rc = group_reader_warm(c->store.group, p->entity, &g);
    w->had_bytes += g.had_bytes;
    w->has_bytes += g.has_bytes;
    return rc;
}

static int warm_part(struct cached *c, const struct reading_part *p, struct volfs_warm *w)
{
    int rc = 0;
    if (c->tiers.cache == NULL)
        return warm_members(c, p, w);
    const uint64_t had = tiers_cached(&c->tiers, p->entity, p->in_block, p->size);
    if (w->fetch)
        rc = tiers_warm(&c->warming, p->entity, p->in_block, p->size);
    w->had_bytes += had;
    w->has_bytes += w->fetch ? tiers_cached(&c->tiers, p->entity, p->in_block, p->size) : had;
    if (rc == -ESTALE)
        log_error("a block is missing in the bucket", lstr("object", p->entity->key));
    return rc == -ESTALE ? -EIO : rc;
}

/* Zeros need no cache. */
static void count_zeros(struct volfs_warm *w, uint64_t bytes)
{
    w->had_bytes += bytes;
    w->has_bytes += bytes;
}

static int warm_extent(struct volfs *v, const struct volume_extent *x, struct volfs_warm *w)
{
    int rc = 0;
    if (x->entry == NULL) {
        count_zeros(w, x->length);
        return 0;
    }
    for (uint64_t done = 0; done < x->length && rc == 0;) {
        struct reading_part p;
        rc = reading_part(v, x, done, x->length, &p);
        if (rc != 0)
            break;
        rc = warm_part(&v->cached, &p, w);
        entity_unref(p.entity);
        done += p.size;
    }
    return rc;
}

static int warm_window(struct volfs *v, uint64_t ino, int64_t at, uint64_t length,
                       struct volfs_warm *w)
{
    struct volume_extent *extents;
    size_t count = 0;
    struct arena *arena = arena_new(4096);
    int rc = volume_extents(v->volume, ino, at, length, arena, &extents, &count);
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = warm_extent(v, &extents[i], w);
    arena_free(arena);
    return rc;
}

/* The hole at *at, and a window behind it.  So a hole costs the same at any length. */
static int warm_next(struct volfs *v, uint64_t ino, uint64_t *at, uint64_t end,
                     struct volfs_warm *w)
{
    const uint64_t most = WINDOW_CHUNKS * volume_format(v->volume)->chunk_bytes;
    int64_t found;
    int rc = volume_seek(v->volume, ino, (int64_t)*at, false, &found);
    if (rc != 0 && rc != -ENXIO)
        return rc;
    const uint64_t data = rc == 0 && (uint64_t)found < end ? (uint64_t)found : end;
    const uint64_t size = end - data < most ? end - data : most;
    count_zeros(w, data - *at);
    *at = data + size;
    return size > 0 ? warm_window(v, ino, (int64_t)data, size, w) : 0;
}

int warm_inode(struct volfs *v, uint64_t ino, struct volfs_warm *w)
{
    struct attr a;
    w->had_bytes = w->has_bytes = 0;
    if (v->cached.tiers.cache == NULL && v->cached.store.group == NULL)
        return -EOPNOTSUPP;
    if (w->offset > INT64_MAX / 2 || w->size > INT64_MAX / 2)
        return -EINVAL;
    int rc = volume_getattr(v->volume, ino, &a);
    const uint64_t wanted = w->offset + w->size;
    const uint64_t end = rc == 0 && wanted > (uint64_t)a.length ? (uint64_t)a.length : wanted;
    for (uint64_t at = w->offset; rc == 0 && at < end;)
        rc = warm_next(v, ino, &at, end, w);
    return rc;
}
