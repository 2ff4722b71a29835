/* DELETE: a tombstone takes the object's name.  And the end of tombstones. */
#include <errno.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fault.h"
#include "common/mem.h"
#include "target/disk/pin_set.h"
#include "target/disk/version_floor.h"
#include "target/store/commit.h"
#include "target/store/tmp_file.h"

struct deletion {
    struct commit commit; /* first: see deletion_of() */
    struct object_condition condition;
    struct buf meta;
    char *name;
    object_done_fn *done;
    void *arg;
};

static struct deletion *deletion_of(struct commit *c)
{
    return (struct deletion *)c;
}

static int delete_rule(struct commit *c, const struct stored *cur, struct error *err)
{
    const struct object_condition *condition = &deletion_of(c)->condition;
    bool damaged = cur->exists && cur->damaged; /* it can go, but nothing is known of it */
    struct attr scratch;
    const struct attr *present = object_present(&c->place, cur, &c->earlier, &scratch);
    int code = object_check_owned(&c->place, err);
    if (code == 0 && !damaged && present == NULL && !stored_lost_object(&c->place, cur))
        code = object_not_found(c->place.name, err);
    if (code != 0 || condition->check == NULL)
        return code;
    return condition->check(condition->ctx, present, err);
}

static void deletion_done(struct commit *c)
{
    struct deletion *d = deletion_of(c);
    if (c->err.code == 0)
        metric_add(c->place.store->deletes, 1);
    if (c->fd >= 0)
        close(c->fd);
    object_place_done(&c->place);
    d->done(d->arg, c->err.code == 0 ? &c->attr : NULL, &c->err);
    buf_done(&d->meta);
    free(d->name);
    free(d);
}

static int deletion_prepare(struct commit *c, struct error *err)
{
    int code = commit_ask(c, err);
    if (code == 0) /* the object may be on another mountpath, where HRW had put it once */
        code = mountpath_make_dir(c->place.mp, c->place.bucket_id, &c->place.path, err);
    return code != 0 ? code : object_tmp_create(c->place.mp, c->tmp, &c->fd, err);
}

/* flags: of the tombstone; with ATTR_DURABLE it is synced. */
static void deletion_start(struct object_store *s, uint64_t bucket_id, const char *name,
                           unsigned flags, const struct object_condition *condition,
                           const struct object_held *earlier, const struct buf *meta,
                           object_done_fn *done, void *arg)
{
    struct deletion *d = xcalloc(1, sizeof *d);
    d->name = xstrdup(name);
    if (meta != NULL)
        buf_append(&d->meta, meta->data, meta->len);
    d->done = done;
    d->arg = arg;
    if (condition != NULL)
        d->condition = *condition;
    bool sync = (flags & ATTR_DURABLE) != 0;
    struct commit *c = &d->commit;
    *c = (struct commit){.fd = -1, .sync = sync, .rule = delete_rule, .done = deletion_done};
    if (earlier != NULL)
        c->earlier = *earlier;
    c->attr = (struct attr){.flags = ATTR_TOMBSTONE | flags,
                            .name = d->name,
                            .meta = d->meta.data,
                            .meta_len = d->meta.len,
                            .modified_ms = clock_wall_ms()};
    if (object_place_set(&c->place, s, bucket_id, d->name, &c->err) == 0 &&
        deletion_prepare(c, &c->err) == 0)
        commit_run(c);
    else
        deletion_done(c);
}

void object_delete(struct object_store *s, uint64_t bucket_id, const char *name,
                   enum durability durability, const struct object_condition *condition,
                   const struct object_held *earlier, object_done_fn *done, void *arg)
{
    unsigned flags = durability == DURABILITY_SYNC ? ATTR_DURABLE : 0;
    deletion_start(s, bucket_id, name, flags, condition, earlier, NULL, done, arg);
}

void object_bury(struct object_store *s, uint64_t bucket_id, const char *name,
                 const struct object_condition *condition, const struct object_held *earlier,
                 const struct buf *meta, object_done_fn *done, void *arg)
{
    deletion_start(s, bucket_id, name, ATTR_DURABLE | ATTR_PENDING, condition, earlier, meta, done,
                   arg);
}

int object_delete_decide(struct object_store *s, uint64_t bucket_id, const char *name,
                         const struct object_condition *condition,
                         const struct object_held *earlier, struct version *version,
                         struct error *err)
{
    struct deletion *d = xcalloc(1, sizeof *d);
    d->condition = *condition;
    d->commit.rule = delete_rule;
    if (earlier != NULL)
        d->commit.earlier = *earlier;
    int code = object_place_set(&d->commit.place, s, bucket_id, name, err);
    if (code == 0)
        code = commit_decide(&d->commit, err);
    *version = d->commit.attr.version;
    object_place_done(&d->commit.place);
    free(d);
    return code;
}

/* --- removing for good ------------------------------------------------------------------------ */

void object_keep_pinned(const struct object_place *p, const struct stored *cur)
{
    if (cur->exists && !cur->damaged)
        pin_sets_keep(p->store->pins, cur->mp, p->bucket_id, &p->path, &cur->attr.version);
}

/* Nothing is pinned of what cannot be read. */
static void keep_pinned_here(const struct object_place *p)
{
    struct stored cur;
    if (!pin_sets_idle(p->store->pins) && stored_read_at(p, p->mp, &cur, NULL) == 0)
        object_keep_pinned(p, &cur);
}

int object_remove_locked(const struct object_place *p, struct error *err)
{
    keep_pinned_here(p);
    int code = index_delete(p->mp->index, p->bucket_id, p->name, err);
    if (code != 0)
        return code;
    int errnum = fault_errno("disk.rename");
    if (errnum == 0 && unlinkat(p->mp->obj_fd, p->path.text, 0) != 0)
        errnum = errno;
    if (errnum == 0 || errnum == ENOENT) {
        index_settled(p->mp->index, p->bucket_id, p->name);
        return 0;
    }
    object_restore_index(p);
    return mountpath_failed(
        p->mp, error_errno(err, errnum, "remove '%s' on '%s'", p->path.text, p->mp->path));
}

/* Its version must not come again. */
static int forget_locked(struct object_place *p, int64_t older_than_ms, struct error *err)
{
    struct stored cur;
    int code = stored_read(p, &cur, err);
    if (code != 0 || !cur.exists || cur.damaged || !attr_is_tombstone(&cur.attr) ||
        attr_is_pending(&cur.attr) || cur.attr.modified_ms >= older_than_ms)
        return code;
    p->mp = cur.mp;
    code = version_floor_cover(p->store->config.mountpaths, cur.attr.version.counter, err);
    return code != 0 ? code : object_remove_locked(p, err);
}

int object_forget_tombstone(struct object_store *s, uint64_t bucket_id, const char *name,
                            int64_t older_than_ms, struct error *err)
{
    _cleanup_place_ struct object_place p = {0};
    int code = object_place_set(&p, s, bucket_id, name, err);
    if (code == E_MOUNTPATH_DISABLED || !p.set->settled) /* it may hide an older copy elsewhere */
        return 0;
    object_lock(&p);
    code = forget_locked(&p, older_than_ms, err);
    object_unlock(&p);
    return code;
}
