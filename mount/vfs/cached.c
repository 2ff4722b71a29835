/* The disk cache of a mount, of vfs.h. */
#include "mount/vfs/vfs_parts.h"

#include <errno.h>
#include <stdlib.h>

#include "common/buf.h"
#include "common/mem.h"
#include "common/metrics.h"

static int no_tiers(const struct error *told, struct dfc_error *err)
{
    *err = (struct dfc_error){.result = DFC_LOCAL, .code = "cache"};
    snprintf(err->message, sizeof err->message, "%s", told->message);
    return DFC_LOCAL;
}

static int open_group(struct vfs *v, struct error *err)
{
    struct group_reader_options options = v->options.group;
    const struct data_store store = v->tiers.store;
    options.client = v->tree.client;
    options.bucket = v->tree.bucket;
    options.scope = v->tiers.scope;
    int rc = group_reader_open(&options, &store, &v->group, err);
    if (rc == 0)
        v->tiers.store = (struct data_store){.context = v->group, .fetch = group_reader_fetch};
    return rc;
}

int vfs_open_tiers(struct vfs *v, struct dfc_error *err)
{
    const struct vfs_options *o = &v->options;
    struct error told = ERROR_INIT;
    v->tiers = (struct tiers){
        .store = {.context = &v->tree, .fetch = tree_fetch},
        .scope = tree_scope(&v->tree),
    };
    if (o->group.group != NULL && open_group(v, &told) != 0)
        return no_tiers(&told, err);
    if (o->cache_directories == NULL)
        return DFC_OK;
    const struct cache_options cache = {
        .directories = o->cache_directories,
        .bytes = o->cache_bytes,
        .fill_bytes = o->buffer_bytes / TIERS_FILL_SHARE,
        .free_percent = o->cache_free_percent,
        .idle_ms = o->cache_idle_ms,
    };
    if (cache_open(&cache, &v->tiers.cache, &told) == 0)
        return DFC_OK;
    return no_tiers(&told, err);
}

void vfs_let_pass(struct vfs *v, const struct backings *backings)
{
    v->tiers.joins = v->tiers.cache != NULL;
    passing_start(&v->passing, backings, v->tiers.joins);
}

uint64_t vfs_buffer_bytes(const struct vfs *v)
{
    uint64_t bytes = v->options.buffer_bytes;
    return v->tiers.cache != NULL ? bytes - bytes / TIERS_FILL_SHARE : bytes;
}

void vfs_close_tiers(struct vfs *v)
{
    cache_close(v->tiers.cache);
    group_reader_close(v->group);
    free(v->tiers.scope);
}

static int warm_group(struct vfs_file *f, struct vfs_warm *w)
{
    struct group_warm group = {.offset = w->offset, .length = w->size, .fetch = w->fetch};
    int rc = group_reader_warm(f->vfs->group, f->entity, &group);
    w->had_bytes = group.had_bytes;
    w->has_bytes = group.has_bytes;
    return rc;
}

int vfs_warm(struct vfs_file *f, struct vfs_warm *w)
{
    struct tiers *t = &f->vfs->tiers;
    int rc = 0;
    if (f->entity == NULL || (t->cache == NULL && f->vfs->group == NULL))
        return -EOPNOTSUPP;
    if (t->cache == NULL)
        return warm_group(f, w);
    w->had_bytes = tiers_cached(t, f->entity, w->offset, w->size);
    w->has_bytes = w->had_bytes;
    if (w->fetch) {
        rc = tiers_warm(t, f->entity, w->offset, w->size);
        w->has_bytes = tiers_cached(t, f->entity, w->offset, w->size);
    }
    return rc;
}

char *vfs_stats(struct vfs *v)
{
    struct buf text = BUF_INIT;
    metric_set(metric_get(M_mount_buffer_used_bytes, NULL), (int64_t)buffer_used(v->buffer));
    metrics_text_used(&text);
    return buf_steal(&text);
}
