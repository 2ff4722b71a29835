/* What background jobs do to objects: taking marks off, taking outputs back, pinning inputs. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fault.h"
#include "common/mem.h"
#include "io/file.h"
#include "target/disk/pin_set.h"
#include "target/index/walk.h"
#include "target/store/commit.h"
#include "target/store/tmp_file.h"

static bool has_mark(const struct stored *cur, const char *job_id)
{
    return cur->exists && !cur->damaged && cur->attr.job != NULL &&
           strcmp(cur->attr.job, job_id) == 0;
}

/* --- an attribute that is written in place ---------------------------------------------------- */

static int replace_attr(const struct object_place *p, const struct attr *a, struct error *err)
{
    unsigned char raw[ATTR_ENCODED_MAX];
    size_t len;
    int code = attr_encode(a, raw, &len, err);
    if (code != 0)
        return code;
    _cleanup_free_ char *path = object_place_text(p, p->mp);
    int errnum = fault_errno("disk.xattr");
    if (errnum == 0 && setxattr(path, ATTR_XATTR, raw, len, XATTR_REPLACE) != 0)
        errnum = errno;
    if (errnum == 0)
        return 0;
    return mountpath_failed(p->mp, error_errno(err, errnum, "write the attribute of '%s'", path));
}

int object_rewrite_attr(const struct object_place *p, const struct attr *a, struct error *err)
{
    struct index_record rec = index_record_of(a);
    int code = index_put(p->mp->index, p->bucket_id, p->name, &rec, err);
    if (code != 0)
        return code;
    if ((code = replace_attr(p, a, err)) != 0)
        object_restore_index(p);
    else
        index_settled(p->mp->index, p->bucket_id, p->name);
    return code;
}

/* --- unmark ----------------------------------------------------------------------------------- */

static int unmark_locked(struct object_place *p, const char *job_id, struct error *err)
{
    struct stored cur;
    int code = stored_read(p, &cur, err);
    if (code != 0 || !has_mark(&cur, job_id))
        return code;
    p->mp = cur.mp;
    struct attr a = cur.attr;
    a.job = NULL;
    a.flags &= ~(unsigned)ATTR_OVER_TOMBSTONE;
    return object_rewrite_attr(p, &a, err);
}

int object_unmark(struct object_store *s, uint64_t bucket_id, const char *name, const char *job_id,
                  struct error *err)
{
    _cleanup_place_ struct object_place p = {0};
    int code = object_place_set(&p, s, bucket_id, name, err);
    if (code == 0) {
        object_lock(&p);
        code = unmark_locked(&p, job_id, err);
        object_unlock(&p);
    }
    return code == 0 ? 0 : error_recode(err, code, "make '%s' visible", name);
}

/* --- discard ---------------------------------------------------------------------------------- */

struct discard {
    struct commit commit; /* first: see discard_of() */
    const char *job_id;
};

static struct discard *discard_of(struct commit *c)
{
    return (struct discard *)c;
}

static int discard_rule(struct commit *c, const struct stored *cur, struct error *err)
{
    if (!has_mark(cur, discard_of(c)->job_id))
        return object_not_found(c->place.name, err);
    c->attr.version = cur->attr.version;
    return 0;
}

static void discard_done(struct commit *c)
{
    (void)c; /* the owner waits: without sync it has all happened */
}

/* The tombstone that the hidden object took the place of comes back, with the version of that.  Of
 * several owners each does so by itself, and only the one that acts numbers writes: another's
 * number could be above that of a write which comes later, and would be taken for one that was
 * made. */
static int bury_again(const struct object_place *p, const char *job_id, struct error *err)
{
    struct discard d = {.job_id = job_id};
    struct commit *c = &d.commit;
    *c = (struct commit){
        .place = *p, .fd = -1, .rule = discard_rule, .moved = true, .done = discard_done};
    c->attr =
        (struct attr){.flags = ATTR_TOMBSTONE, .name = p->name, .modified_ms = clock_wall_ms()};
    int code = object_tmp_create(p->mp, c->tmp, &c->fd, err);
    if (code != 0)
        return code;
    commit_run(c);
    close(c->fd);
    if (c->err.code == E_OBJECT_NOT_FOUND) /* it has lost its mark meanwhile */
        return 0;
    if (c->err.code != 0 && err != NULL)
        *err = c->err;
    return c->err.code;
}

/* Removes it, unless a tombstone has to come back: that is done without the lock. */
static int discard_locked(struct object_place *p, const char *job_id, bool buries, bool *bury,
                          struct error *err)
{
    struct stored cur;
    int code = stored_read(p, &cur, err);
    if (code != 0 || !has_mark(&cur, job_id))
        return code;
    p->mp = cur.mp;
    *bury = buries && (cur.attr.flags & ATTR_OVER_TOMBSTONE) != 0;
    return *bury ? 0 : object_remove_locked(p, err);
}

static int discard(struct object_store *s, uint64_t bucket_id, const char *name, const char *job_id,
                   bool buries, struct error *err)
{
    _cleanup_place_ struct object_place p = {0};
    bool bury = false;
    int code = object_place_set(&p, s, bucket_id, name, err);
    if (code == 0) {
        object_lock(&p);
        code = discard_locked(&p, job_id, buries, &bury, err);
        object_unlock(&p);
    }
    if (bury)
        code = bury_again(&p, job_id, err);
    return code == 0 ? 0 : error_recode(err, code, "discard '%s'", name);
}

int object_discard(struct object_store *s, uint64_t bucket_id, const char *name, const char *job_id,
                   struct error *err)
{
    return discard(s, bucket_id, name, job_id, true, err);
}

int object_forsake(struct object_store *s, uint64_t bucket_id, const char *name, const char *job_id,
                   struct error *err)
{
    return discard(s, bucket_id, name, job_id, false, err);
}

int object_store_sync(struct object_store *s, struct error *err)
{
    _cleanup_mountpath_set_ const struct mountpath_set *all =
        mountpaths_current(s->config.mountpaths);
    for (size_t i = 0; i < all->count; i++) {
        struct mountpath *mp = all->all[i];
        int errnum = fault_errno("disk.sync");
        if (errnum == 0 && syncfs(mp->root_fd) != 0)
            errnum = errno;
        if (errnum != 0)
            return mountpath_failed(mp, error_errno(err, errnum, "sync '%s'", mp->path));
    }
    return 0;
}

/* --- what a job hides, for its copies on other targets
 * --------------------------------------------
 */

static int open_marked_locked(struct object_place *p, const char *job_id, struct object *o,
                              struct error *err)
{
    struct stored cur;
    int code = stored_read(p, &cur, err);
    if (code == 0 && !has_mark(&cur, job_id))
        code = object_not_found(p->name, err);
    return code != 0 ? code : object_open_any(p, cur.mp, o, err);
}

int object_open_marked(struct object_store *s, uint64_t bucket_id, const char *name,
                       const char *job_id, struct object *o, struct error *err)
{
    _cleanup_place_ struct object_place p = {0};
    int code = object_place_set(&p, s, bucket_id, name, err);
    if (code != 0)
        return code;
    object_lock(&p);
    code = open_marked_locked(&p, job_id, o, err);
    object_unlock(&p);
    return code;
}

/* --- finding what carries a mark -------------------------------------------------------------- */

static bool is_marked(const void *job_id, const char *name, const struct index_record *rec)
{
    (void)name;
    return rec->job != NULL && strcmp(rec->job, job_id) == 0;
}

/* fn() may write: no cursor is open while it runs. */
static int each_marked_in(struct index *x, uint64_t bucket_id, const char *job_id,
                          int (*fn)(void *ctx, const char *name, struct error *err), void *ctx,
                          struct error *err)
{
    _cleanup_(index_batch_freep)
    struct index_batch *b = index_batch_new(bucket_id, NULL, is_marked, job_id);
    int code = index_check(x, err);
    while (code == 0 && b->walk.more) {
        code = index_batch_fill(b, x, err);
        for (size_t i = 0; code == 0 && i < b->count; i++)
            code = fn(ctx, b->names[i], err);
    }
    return code;
}

int object_each_marked(struct object_store *s, uint64_t bucket_id, const char *job_id,
                       int (*fn)(void *ctx, const char *name, struct error *err), void *ctx,
                       struct error *err)
{
    _cleanup_mountpath_set_ const struct mountpath_set *all =
        mountpaths_current(s->config.mountpaths);
    for (size_t i = 0; i < all->count; i++) {
        int code = each_marked_in(all->all[i]->index, bucket_id, job_id, fn, ctx, err);
        if (code != 0)
            return code;
    }
    return 0;
}

/* --- pins ------------------------------------------------------------------------------------- */

static int pin_locked(struct object_place *p, const char *job_id, const char *link_name,
                      char **path, struct error *err)
{
    struct stored cur;
    int code = stored_read(p, &cur, err);
    if (code != 0)
        return code;
    if (!stored_visible(p->store, &cur))
        return object_not_found(p->name, err);
    p->mp = cur.mp;
    return cur.attr.slices != NULL ? 0 : pin_link(p->mp, &p->path, job_id, link_name, path, err);
}

int object_pin(struct object_store *s, uint64_t bucket_id, const char *name, const char *job_id,
               const char *link_name, char **path, struct object *o, struct error *err)
{
    assert(strchr(job_id, '/') == NULL && strchr(link_name, '/') == NULL);
    _cleanup_place_ struct object_place p = {0};
    _cleanup_free_ char *link = NULL;
    int code = object_place_set(&p, s, bucket_id, name, err);
    if (code == 0) {
        object_lock(&p);
        code = pin_locked(&p, job_id, link_name, &link, err);
        if (code == 0)
            code = object_open_at(&p, p.mp, o, err);
        object_unlock(&p);
    }
    if (code == 0)
        *path = steal(link);
    return code == 0 ? 0 : error_recode(err, code, "pin '%s'", name);
}

struct pin_sets *object_store_pins(const struct object_store *s)
{
    return s->pins;
}

/* What the index has of an object whose bytes are here.  Under the lock the file says the same. */
static bool look_in_index(const struct object_place *p, struct object *o)
{
    struct index_record rec;
    char job[ATTR_JOB_MAX + 1];
    if (!p->set->settled || index_check(p->mp->index, NULL) != 0 ||
        index_find(p->mp->index, p->bucket_id, p->name, &rec, job, NULL) != 1 || rec.tombstone ||
        rec.sliced || object_job_hides(p->store, rec.job))
        return false;
    o->fd = -1;
    o->attr = (struct attr){.name = p->name,
                            .size = rec.size,
                            .version = rec.version,
                            .checksum = rec.checksum,
                            .modified_ms = rec.modified_ms};
    return true;
}

static int open_locked(struct object_place *p, struct object *o, struct error *err)
{
    struct stored cur;
    if (p->set->settled)
        return object_open_at(p, p->mp, o, err);
    int code = stored_read(p, &cur, err);
    return code != 0 ? code : object_open_at(p, cur.mp, o, err);
}

int object_pin_in(struct object_store *s, struct pin_set *set, uint64_t bucket_id, const char *name,
                  bool opens, struct object *o, struct error *err)
{
    _cleanup_place_ struct object_place p = {0};
    int code = object_place_set(&p, s, bucket_id, name, err);
    if (code == 0) {
        object_lock(&p);
        code = !opens && look_in_index(&p, o) ? 0 : open_locked(&p, o, err);
        if (code == 0 && o->attr.slices == NULL)
            pin_set_add(set, &p.path, &o->attr.version, p.set->roster->generation);
        object_unlock(&p);
    }
    return code == 0 ? 0 : error_recode(err, code, "pin '%s'", name);
}

/* The file was not replaced since: its attribute need not be read. */
static int open_trusted(const struct object_place *p, int *fd, struct error *err)
{
    int errnum = fault_errno_at("disk.open", p->mp->path);
    *fd = errnum == 0 ? openat(p->mp->obj_fd, p->path.text, O_RDONLY | O_CLOEXEC) : -1;
    if (*fd < 0 && errnum == 0)
        errnum = errno;
    if (errnum == ENOENT)
        return object_not_found(p->name, err);
    return errnum == 0
               ? 0
               : mountpath_failed(p->mp, error_errno(err, errnum, "open object '%s' on '%s'",
                                                     p->name, p->mp->path));
}

static int open_compared(struct object_place *p, struct pin_set *set, int *fd, struct error *err)
{
    struct object o = {.fd = -1};
    int code = open_locked(p, &o, err);
    if (code == 0 && !pin_set_has(set, &p->path, &o.attr.version))
        code = object_not_found(p->name, err);
    if (code == 0)
        *fd = o.fd;
    else if (o.fd >= 0)
        close(o.fd);
    return code;
}

int object_open_pinned(struct object_store *s, struct pin_set *set, uint64_t bucket_id,
                       const char *name, int *fd, struct error *err)
{
    _cleanup_place_ struct object_place p = {0};
    int code = object_place_set(&p, s, bucket_id, name, err);
    if (code != 0)
        return code;
    object_lock(&p);
    bool trusts = p.set->settled && pin_set_trusts(set, &p.path, p.set->roster->generation);
    code = trusts ? open_trusted(&p, fd, err) : open_compared(&p, set, fd, err);
    object_unlock(&p);
    return code;
}

int object_remove_job_files(struct object_store *s, const char *job_id, struct error *err)
{
    assert(*job_id != '\0' && strchr(job_id, '/') == NULL && *job_id != '.');
    _cleanup_mountpath_set_ const struct mountpath_set *all =
        mountpaths_current(s->config.mountpaths);
    for (size_t i = 0; i < all->count; i++) {
        _cleanup_free_ char *dir = xprintf("%s/.dfc/jobs/%s", all->all[i]->path, job_id);
        int code = file_remove_tree(dir, err);
        if (code != 0)
            return code;
    }
    return 0;
}
