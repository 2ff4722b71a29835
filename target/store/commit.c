#include "target/store/commit.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/fault.h"
#include "common/log.h"
#include "io/file.h"
#include "target/disk/version_floor.h"
#include "target/store/move.h"
#include "target/store/tmp_file.h"

struct commit_step {
    const char *name;
    int (*call)(struct commit *c, struct error *err); /* or NULL: */
    int (*fd)(const struct commit *c);                /* what to sync, */
    const char *point;                                /* unless a test leaves it out here, */
    bool write_back;                                  /* or only to write back */
    bool last;
};

enum {
    STEP_STAMP, /* with sync */
    STEP_SYNC_FILE,
    STEP_PUBLISH,
    STEP_SYNC_DIR,
    STEP_WRITE_FILE, /* without, over another object */
    STEP_PUBLISH_WRITTEN,
    STEP_PUBLISH_ALONE, /* without, under a new name */
};

/* --- the steps -------------------------------------------------------------------------------- */

/* Whatever the name has had, known or not, is less. */
static int decide_version(struct commit *c, const struct stored *cur, struct error *err)
{
    const struct object_env *env = c->place.store->config.env;
    struct mountpaths *all = c->place.store->config.mountpaths;
    uint64_t term, map;
    if (c->moved) /* the rule has seen that it is greater */
        return 0;
    int code = crash_state_settle(c->place.mp->crash_state, err);
    if (code == 0 && cur->unknown)
        code = version_floor_step(all, err);
    if (code != 0)
        return code;
    env->map(env->ctx, &term, &map);
    struct version lost;
    const struct version *old = cur->exists && !cur->damaged ? &cur->attr.version : NULL;
    if (stored_lost(&c->place, cur, &lost))
        old = &lost;
    if (c->earlier.found && (old == NULL || version_compare(&c->earlier.version, old) > 0))
        old = &c->earlier.version;
    c->attr.version = version_next(old, term, map, version_floor_in_force(all));
    return 0;
}

static int read_and_ask(struct commit *c, struct stored *cur, struct error *err)
{
    int code = stored_read(&c->place, cur, err);
    return code != 0 ? code : c->rule(c, cur, err);
}

int commit_ask(struct commit *c, struct error *err)
{
    struct stored cur;
    object_lock(&c->place);
    int code = read_and_ask(c, &cur, err);
    object_unlock(&c->place);
    return code;
}

int commit_decide(struct commit *c, struct error *err)
{
    struct stored cur;
    object_lock(&c->place);
    int code = read_and_ask(c, &cur, err);
    if (code == 0)
        code = decide_version(c, &cur, err);
    object_unlock(&c->place);
    return code;
}

static int step_stamp(struct commit *c, struct error *err)
{
    int code = commit_decide(c, err);
    return code != 0 ? code : object_set_attr(c->place.mp, c->fd, &c->attr, err);
}

/* Without sync this is the only stamp.  With it, somebody else has written the name since
 * step_stamp(): theirs must not win. */
static int stamp_now(struct commit *c, const struct stored *cur, struct error *err)
{
    int code = decide_version(c, cur, err);
    if (!c->sync)
        c->attr.modified_ms = crash_state_time(c->place.mp->crash_state, c->attr.modified_ms);
    if (code == 0)
        code = object_set_attr(c->place.mp, c->fd, &c->attr, err);
    if (code != 0 || !c->sync)
        return code;
    int errnum = file_sync(c->fd, "sync.restamp");
    return errnum == 0
               ? 0
               : error_errno(err, errnum, "sync '%s/.dfc/tmp/%s'", c->place.mp->path, c->tmp);
}

/* Without sync a file system may write the name down before the bytes: over a new name that is a
 * loss nobody was promised not to have, but an old object must not go with it. */
static bool bytes_come_first(const struct commit *c, const struct stored *cur)
{
    return !c->sync && c->step != STEP_PUBLISH_WRITTEN && cur->exists &&
           (c->attr.size > 0 || c->place.mp->syncs_replaced);
}

/* 0 or an errno. */
static int rename_replacing(const struct commit *c)
{
    const struct mountpath *mp = c->place.mp;
    return renameat(mp->tmp_fd, c->tmp, mp->obj_fd, c->place.path.text) == 0 ? 0 : errno;
}

static int rename_exchanging(const struct commit *c)
{
    const struct mountpath *mp = c->place.mp;
    int rc = renameat2(mp->tmp_fd, c->tmp, mp->obj_fd, c->place.path.text, RENAME_EXCHANGE);
    return rc == 0 ? 0 : errno;
}

static int rename_step(struct commit *c, const struct stored *cur, struct error *err)
{
    int errnum = fault_errno("disk.rename");
    c->created = !cur->exists;
    if (errnum == 0 && c->sync && cur->exists) {
        errnum = rename_exchanging(c);
        c->exchanged = errnum == 0;
        if (errnum == ENOENT || errnum == EINVAL || errnum == ENOSYS) /* elsewhere, or unknown */
            errnum = rename_replacing(c);
    } else if (errnum == 0) {
        errnum = rename_replacing(c);
    }
    if (errnum == 0)
        return 0;
    if (errnum == ENOENT)
        return error_set(err, E_BUCKET_NOT_FOUND, "the bucket was destroyed meanwhile");
    return error_errno(err, errnum, "rename '%s/.dfc/tmp/%s' to '%s'", c->place.mp->path, c->tmp,
                       c->place.path.text);
}

static bool is_overtaken(const struct commit *c, const struct stored *cur)
{
    return cur->exists && !cur->damaged &&
           version_compare(&cur->attr.version, &c->attr.version) >= 0;
}

static int publish_locked(struct commit *c, struct error *err)
{
    const struct object_place *p = &c->place;
    struct stored cur;
    int code = read_and_ask(c, &cur, err);
    c->waits = code == 0 && bytes_come_first(c, &cur);
    if (c->waits)
        return 0;
    if (code == 0 && (!c->sync || is_overtaken(c, &cur)))
        code = stamp_now(c, &cur, err);
    if (code != 0)
        return code;
    struct index_record rec = index_record_of(&c->attr);
    if ((code = index_put(p->mp->index, p->bucket_id, p->name, &rec, err)) != 0)
        return code;
    if (c->seen != NULL)
        c->seen(c);
    object_keep_pinned(p, &cur);
    if ((code = rename_step(c, &cur, err)) != 0)
        object_restore_index(p);
    else
        index_settled(p->mp->index, p->bucket_id, p->name);
    return code;
}

/* The directory that the name will stand in, for its sync; the way to it is on the disk by then. */
static int open_dir(struct commit *c, struct error *err)
{
    struct mountpath *mp = c->place.mp;
    char dir[OBJECT_PATH_MAX];
    snprintf(dir, sizeof dir, "%.*s", c->place.path.dir_len, c->place.path.text);
    c->dir_fd = openat(mp->obj_fd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (c->dir_fd < 0 && errno == ENOENT)
        return error_set(err, E_BUCKET_NOT_FOUND, "the bucket was destroyed meanwhile");
    if (c->dir_fd < 0)
        return error_errno(err, errno, "open '%s/.dfc/obj/%s'", mp->path, dir);
    return mountpath_sync_way(mp, c->place.bucket_id, &c->place.path, err);
}

static int step_publish(struct commit *c, struct error *err)
{
    int code = c->sync ? open_dir(c, err) : 0;
    if (code != 0)
        return code;
    object_lock(&c->place);
    code = publish_locked(c, err);
    object_unlock(&c->place);
    return code;
}

static int file_of(const struct commit *c)
{
    return c->fd;
}

static int dir_of(const struct commit *c)
{
    return c->dir_fd;
}

static int step_publish_unsynced(struct commit *c, struct error *err)
{
    struct crash_state *life = c->place.mp->crash_state;
    crash_state_enter(life);
    int code = step_publish(c, err);
    crash_state_leave(life);
    return code;
}

static const struct commit_step steps[] = {
    [STEP_STAMP] = {.name = "stamp", .call = step_stamp},
    [STEP_SYNC_FILE] = {.name = "sync the file", .fd = file_of, .point = "sync.object"},
    [STEP_PUBLISH] = {.name = "publish", .call = step_publish},
    [STEP_SYNC_DIR] = {.name = "sync the directory",
                       .fd = dir_of,
                       .point = "sync.name",
                       .last = true},
    [STEP_WRITE_FILE] = {.name = "write the file",
                         .fd = file_of,
                         .write_back = true,
                         .point = "sync.bytes"},
    [STEP_PUBLISH_WRITTEN] = {.name = "publish", .call = step_publish_unsynced, .last = true},
    [STEP_PUBLISH_ALONE] = {.name = "publish", .call = step_publish_unsynced, .last = true},
};

/* --- the end ---------------------------------------------------------------------------------- */

/* Somebody may have read it meanwhile. */
static void cover_version(const struct commit *c)
{
    struct error err = ERROR_INIT;
    if (version_floor_cover(c->place.store->config.mountpaths, c->attr.version.counter, &err) != 0)
        log_error("version not covered", lstr("name", c->place.name), lerr(&err));
}

/* The name may not be on the disk: what was there before comes back, unless another writer has
 * been here since, or the file system cannot exchange (then the new one stays). */
static void take_back(struct commit *c)
{
    struct stored cur;
    struct error err = ERROR_INIT;
    const struct mountpath *mp = c->place.mp;
    object_lock(&c->place);
    if (stored_read(&c->place, &cur, &err) == 0 && cur.exists && !cur.damaged &&
        version_compare(&cur.attr.version, &c->attr.version) == 0) {
        int errnum = 0;
        if (c->exchanged)
            errnum = rename_exchanging(c);
        else if (c->created && unlinkat(mp->obj_fd, c->place.path.text, 0) != 0)
            errnum = errno;
        cover_version(c);
        if (errnum != 0)
            log_error("object not taken back", lstr("name", c->place.name),
                      lstr("mountpath", mp->path), li64("errno", errnum));
        object_restore_index(&c->place);
    }
    object_unlock(&c->place);
}

bool commit_is_kept(const struct commit *c)
{
    return c->keeps && c->err.code == E_STALE_MAP;
}

static void tell_pending(const struct commit *c)
{
    const struct object_env *env = c->place.store->config.env;
    if (env->pending != NULL)
        env->pending(env->ctx, c->place.bucket_id, c->place.name, c->attr.modified_ms);
}

static void commit_end(struct commit *c)
{
    const int code = c->err.code;
    const bool is_named = code != 0 && c->step == STEP_SYNC_DIR;
    if (is_named && c->stays)
        error_recode(&c->err, E_IN_DOUBT, "a loss of power may undo it");
    else if (is_named)
        take_back(c);
    if (code == 0)
        object_remove_others(&c->place);
    /* Either our file, which did not become the object, or the old one, which no longer is. */
    bool tmp_left = (code != 0 && !commit_is_kept(c)) || c->exchanged;
    if (tmp_left && unlinkat(c->place.mp->tmp_fd, c->tmp, 0) != 0 && errno != ENOENT)
        log_warn("temporary file not removed", lstr("mountpath", c->place.mp->path),
                 lstr("name", c->tmp), li64("errno", errno));
    if (c->dir_fd >= 0)
        close(c->dir_fd);
    mountpath_failed(c->place.mp, code);
    if (code == 0 && attr_is_pending(&c->attr) && c->attr.job == NULL)
        tell_pending(c);
    c->done(c);
}

/* --- the drivers ------------------------------------------------------------------------------ */

/* Without sync, over nothing: true, or what is there has to wait for the bytes. */
static bool run_here(struct commit *c)
{
    c->step = STEP_PUBLISH_ALONE;
    (void)steps[c->step].call(c, &c->err);
    if (c->waits)
        return false;
    commit_end(c);
    return true;
}

static struct commit *commit_of(const struct disk_op *op)
{
    struct commit *c = op->ctx;
    assert(c->magic == COMMIT_MAGIC);
    return c;
}

static int run_call(struct disk_op *op)
{
    struct commit *c = commit_of(op);
    return steps[c->step].call(c, &c->err) == 0 ? 0 : -EIO;
}

static void step_done(struct disk_op *op, int result);

static struct disk_op *next_op(struct commit *c)
{
    const struct commit_step *step = &steps[c->step];
    enum disk_op_kind sync = step->write_back ? DISK_WRITE_BACK : DISK_FSYNC;
    c->op = (struct disk_op){.kind = step->call != NULL ? DISK_CALL : sync,
                             .fd = step->fd != NULL ? step->fd(c) : -1,
                             .call = run_call,
                             .point = step->point,
                             .done = step_done,
                             .ctx = c};
    return &c->op;
}

static void step_done(struct disk_op *op, int result)
{
    struct commit *c = commit_of(op);
    if (result < 0 && c->err.code == 0)
        error_errno(&c->err, -result, "%s of '%s' on '%s'", steps[c->step].name, c->place.name,
                    c->place.mp->path);
    if (c->err.code != 0 || steps[c->step].last) {
        commit_end(c);
        return;
    }
    c->step++;
    disk_submit_next(c->place.mp->disk, next_op(c));
}

/* The first step for the disk; what comes before is done here.  Without sync this is over another
 * object, which is lost with the new one unless all of the new one is on the disk. */
static int begin_steps(struct commit *c)
{
    c->sync = c->sync || c->place.mp->syncs_replaced;
    if (!c->sync) {
        c->step = STEP_WRITE_FILE;
        return 0;
    }
    c->step = STEP_STAMP;
    int code = step_stamp(c, &c->err);
    if (code == 0)
        c->step = STEP_SYNC_FILE;
    return code;
}

void commit_run(struct commit *c)
{
    c->magic = COMMIT_MAGIC;
    c->dir_fd = -1;
    c->err = ERROR_INIT;
    c->waits = false;
    if (!c->sync && run_here(c))
        return;
    if (begin_steps(c) != 0)
        commit_end(c);
    else
        disk_submit(c->place.mp->disk, next_op(c));
}
