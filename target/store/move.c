#include "target/store/move.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/fault.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/file.h"
#include "target/store/object_parts.h"
#include "target/store/quarantine.h"
#include "target/store/tmp_file.h"

enum { COPY_BYTES = 1 << 20, TRIES_MAX = 3 };

/* One object on its way. */
struct move {
    struct object_place place; /* place.mp: where it belongs */
    struct mountpath *from;
    struct stored cur; /* what is there */
    enum object_move_result result;
    bool whole; /* the file itself is renamed */
    int fd;     /* of the copy in tmp/; -1: none */
    char tmp[MOUNTPATH_TMP_NAME];
};

static int move_error(struct mountpath *mp, int errnum, const char *doing, const struct move *m,
                      struct error *err)
{
    return mountpath_failed(
        mp, error_errno(err, errnum, "%s of '%s' on '%s'", doing, m->place.name, mp->path));
}

/* --- the copy: without the lock --------------------------------------------------------------- */

static int damaged(struct move *m)
{
    log_error("object without a readable attribute not moved", lstr("mountpath", m->from->path),
              lstr("name", m->place.name));
    m->result = MOVE_DAMAGED;
    return 0;
}

static int copy_bytes(struct move *m, int in, uint64_t size, struct checksum *sum,
                      struct error *err)
{
    _cleanup_free_ char *piece = xmalloc(COPY_BYTES);
    for (uint64_t at = 0; at < size;) {
        size_t len = size - at < COPY_BYTES ? (size_t)(size - at) : COPY_BYTES;
        int code = file_pread_full(in, piece, len, at, err);
        if (code != 0)
            return mountpath_failed(m->from, code);
        checksum_update(sum, piece, len);
        if ((code = file_write_all(m->fd, piece, len, err)) != 0)
            return mountpath_failed(m->place.mp, code);
        at += len;
    }
    return 0;
}

/* Of a file without bytes the mark, too: where they are (quarantine.h). */
static int copy_attribute(struct move *m, int in, bool marked, struct error *err)
{
    int code = object_set_attr(m->place.mp, m->fd, &m->cur.attr, err);
    if (code == 0 && marked)
        code = quarantine_copy_mark(m->place.mp, in, m->fd, err);
    if (code != 0)
        return mountpath_failed(m->place.mp, code);
    int errnum = fault_errno("disk.sync");
    if (errnum == 0 && fsync(m->fd) != 0)
        errnum = errno;
    return errnum == 0 ? 0 : move_error(m->place.mp, errnum, "sync of the copy", m, err);
}

/* A damaged object is moved as it is: it is not readable there either, and says so. */
static int copy_checked(struct move *m, int in, struct error *err)
{
    struct stat st;
    if (fstat(in, &st) != 0)
        return move_error(m->from, errno, "stat", m, err);
    struct checksum *sum = checksum_new(m->cur.attr.checksum.type);
    struct checksum_value got;
    int code = copy_bytes(m, in, (uint64_t)st.st_size, sum, err);
    checksum_final(sum, &got);
    checksum_free(sum);
    bool marked = st.st_size == 0 && quarantine_fd_is_stub(in);
    if (code == 0 && !marked && !checksum_equal(&got, &m->cur.attr.checksum)) {
        metric_add(metric_get(M_checksum_errors_total, NULL), 1);
        log_error("object does not have its checksum any more", lstr("mountpath", m->from->path),
                  lstr("name", m->place.name));
    }
    return code != 0 ? code : copy_attribute(m, in, marked, err);
}

static int make_copy(struct move *m, struct error *err)
{
    int errnum = fault_errno("resilver.copy");
    _cleanup_close_ int in =
        errnum == 0 ? openat(m->from->obj_fd, m->place.path.text, O_RDONLY | O_CLOEXEC) : -1;
    if (in < 0 && errnum == 0)
        errnum = errno;
    if (errnum == ENOENT)
        return 0; /* finish() will see it */
    if (errnum != 0)
        return move_error(m->from, errnum, "open", m, err);
    int code = object_tmp_create(m->place.mp, m->tmp, &m->fd, err);
    return code != 0 ? code : copy_checked(m, in, err);
}

static void drop_copy(struct move *m)
{
    if (m->fd < 0)
        return;
    close(steal_fd(&m->fd));
    unlinkat(m->place.mp->tmp_fd, m->tmp, 0); /* gone where it was renamed */
}

/* --- the end: under the lock ------------------------------------------------------------------ */

/* What is called so below the objects of p->mp. */
static int sync_path(const struct object_place *p, const char *path, const char *point,
                     struct error *err)
{
    _cleanup_close_ int fd = openat(p->mp->obj_fd, path, O_RDONLY | O_CLOEXEC);
    int errnum = fd < 0 ? errno : file_sync(fd, point);
    return errnum == 0 ? 0
                       : mountpath_failed(p->mp, error_errno(err, errnum, "sync '%s' on '%s'",
                                                             p->path.text, p->mp->path));
}

static int sync_dir_of(const struct object_place *p, struct error *err)
{
    char dir[OBJECT_PATH_MAX];
    snprintf(dir, sizeof dir, "%.*s", p->path.dir_len, p->path.text);
    int code = mountpath_sync_way(p->mp, p->bucket_id, &p->path, err);
    return code != 0 ? code : sync_path(p, dir, "sync.name", err);
}

/* Before an older copy goes that lies on another disk: power could take both, where the newest was
 * named without a sync.  A tombstone may go with what it hides. */
static int sync_newest(const struct object_place *p, const struct stored *newest, struct error *err)
{
    if ((newest->attr.flags & ATTR_DURABLE) != 0 || attr_is_tombstone(&newest->attr))
        return 0;
    int errnum = fault_errno("resilver.newest");
    if (errnum != 0)
        return error_errno(err, errnum, "sync '%s' on '%s'", p->path.text, p->mp->path);
    int code = sync_path(p, p->path.text, "sync.object", err);
    return code != 0 ? code : sync_dir_of(p, err);
}

/* 0 or an errno. */
static int rename_it(struct move *m)
{
    const struct mountpath *to = m->place.mp;
    int errnum = fault_errno("resilver.publish");
    if (errnum == 0 && m->whole)
        errnum = fault_errno("resilver.rename");
    if (errnum != 0)
        return errnum;
    int rc = m->whole
                 ? renameat(m->from->obj_fd, m->place.path.text, to->obj_fd, m->place.path.text)
                 : renameat(to->tmp_fd, m->tmp, to->obj_fd, m->place.path.text);
    return rc == 0 ? 0 : errno;
}

static struct object_place place_at(const struct move *m)
{
    struct object_place there = m->place;
    there.mp = m->from;
    return there;
}

/* The index says what the file says again, here and there. */
static int not_renamed(struct move *m, int errnum, struct error *err)
{
    const struct object_place there = place_at(m);
    object_restore_index(&m->place);
    if (m->whole)
        object_restore_index(&there);
    if (errnum == ENOENT)
        return error_set(err, E_BUCKET_NOT_FOUND, "the bucket was destroyed meanwhile");
    if (errnum == EXDEV && m->whole)
        return error_set(err, E_RANGE, "another file system");
    return move_error(m->place.mp, errnum, "rename", m, err);
}

/* A rename of the file itself changes both mountpaths: each index says so before. */
static int publish(struct move *m, struct error *err)
{
    const struct object_place *p = &m->place;
    struct index_record rec = index_record_of(&m->cur.attr);
    int code = index_put(p->mp->index, p->bucket_id, p->name, &rec, err);
    if (code == 0 && m->whole &&
        (code = mountpaths_unlist(p->store->config.mountpaths, m->from, p->bucket_id, p->name,
                                  err)) != 0)
        object_restore_index(p);
    if (code != 0)
        return code;
    int errnum = rename_it(m);
    if (errnum != 0)
        return not_renamed(m, errnum, err);
    index_settled(p->mp->index, p->bucket_id, p->name);
    if (m->whole)
        index_settled(m->from->index, p->bucket_id, p->name);
    return sync_dir_of(p, err);
}

/* Out of the index first: while it is gone there, it stands in the other one. */
static int remove_copy(const struct object_place *p, struct mountpath *from, struct error *err)
{
    int errnum = fault_errno("resilver.remove");
    if (errnum != 0)
        return error_errno(err, errnum, "remove '%s' on '%s'", p->name, from->path);
    int code = mountpaths_unlist(p->store->config.mountpaths, from, p->bucket_id, p->name, err);
    if (code != 0)
        return code;
    if (unlinkat(from->obj_fd, p->path.text, 0) == 0 || errno == ENOENT) {
        index_settled(from->index, p->bucket_id, p->name);
        return 0;
    }
    errnum = errno;
    const struct object_place there = {.store = p->store,
                                       .set = p->set,
                                       .mp = from,
                                       .bucket_id = p->bucket_id,
                                       .name = p->name,
                                       .path = p->path};
    object_restore_index(&there);
    return mountpath_failed(
        from, error_errno(err, errnum, "remove '%s' on '%s'", p->path.text, from->path));
}

/* The same version has another attribute once it is uploaded (back.h). */
static bool same_copy(const struct stored *a, const struct stored *b)
{
    return version_compare(&a->attr.version, &b->attr.version) == 0 &&
           attr_is_pending(&a->attr) == attr_is_pending(&b->attr);
}

/* One of the same version there that has lost its bytes since is no reason for this one to go. */
static bool is_superseded(const struct move *m, const struct stored *now,
                          const struct stored *there)
{
    if (!there->exists || there->damaged)
        return false;
    int than = version_compare(&there->attr.version, &now->attr.version);
    return than > 0 || (than == 0 && !stored_is_hollow(&m->place, there));
}

/* *again: what was copied is not what is there now. */
static int finish_locked(struct move *m, bool *again, struct error *err)
{
    struct stored now, there;
    int code = stored_read_at(&m->place, m->from, &now, err);
    if (code == 0)
        code = stored_read_at(&m->place, m->place.mp, &there, err);
    if (code != 0 || !now.exists)
        return code;
    bool newer_there = is_superseded(m, &now, &there);
    if (now.damaged)
        return damaged(m);
    if (!newer_there && (m->fd < 0 || !same_copy(&now, &m->cur)) && !m->whole) {
        *again = true;
        return 0;
    }
    stored_copy(&m->cur, &now); /* it may have lost its mark meanwhile */
    if (!newer_there)
        code = publish(m, err);
    else
        code = sync_newest(&m->place, &there, err);
    if (code == 0 && (newer_there || !m->whole))
        code = remove_copy(&m->place, m->from, err);
    if (code == 0)
        m->result = MOVE_DONE;
    return code;
}

static int finish(struct move *m, bool *again, struct error *err)
{
    *again = false;
    object_lock(&m->place);
    int code = finish_locked(m, again, err);
    object_unlock(&m->place);
    return code;
}

/* It is in the index, and was not found: gone meanwhile, or the index was wrong. */
static void check_index(const struct move *m)
{
    const struct object_place there = place_at(m);
    object_lock(&there);
    object_restore_index(&there);
    object_unlock(&there);
}

/* A job's mark is taken off in place, and by the index of the mountpath that it is on. */
static int look(struct move *m, bool *go_on, struct error *err)
{
    *go_on = false;
    int code = stored_read_at(&m->place, m->from, &m->cur, err);
    if (code == 0 && !m->cur.exists)
        check_index(m);
    if (code != 0 || !m->cur.exists)
        return code;
    if (m->cur.damaged)
        return damaged(m);
    if (m->cur.attr.job != NULL) {
        m->result = MOVE_LATER;
        return 0;
    }
    *go_on = true;
    return mountpath_make_dir(m->place.mp, m->place.bucket_id, &m->place.path, err);
}

static int try_move(struct move *m, bool *again, struct error *err)
{
    bool go_on;
    *again = false;
    int code = look(m, &go_on, err);
    if (code != 0 || !go_on)
        return code;
    if (!m->whole)
        code = make_copy(m, err);
    if (code == 0 && m->result == MOVE_NOTHING)
        code = finish(m, again, err);
    drop_copy(m);
    if (code != E_RANGE || !m->whole)
        return code;
    m->whole = false; /* one device, but not one mount */
    *again = true;
    return 0;
}

static int move_placed(struct move *m, struct error *err)
{
    bool again = true;
    int code = 0;
    m->whole = m->from->device == m->place.mp->device;
    for (int i = 0; i < TRIES_MAX && again && code == 0; i++)
        code = try_move(m, &again, err);
    if (code == 0 && again)
        m->result = MOVE_LATER;
    return code;
}

int object_move(struct object_store *s, uint64_t bucket_id, const char *name,
                struct mountpath *from, enum object_move_result *result, uint64_t *bytes,
                struct error *err)
{
    struct move *m = xcalloc(1, sizeof *m);
    m->from = from;
    m->fd = -1;
    int code = object_place_set(&m->place, s, bucket_id, name, err);
    if (code == E_MOUNTPATH_DISABLED)
        m->result = MOVE_LATER;
    else if (code == 0 && m->place.mp != from)
        code = move_placed(m, err);
    *result = m->result;
    *bytes = m->result == MOVE_DONE ? m->cur.attr.size : 0;
    object_place_done(&m->place);
    free(m);
    if (code == E_MOUNTPATH_DISABLED || code == E_BUCKET_NOT_FOUND) /* the next pass sees */
        return 0;
    return code == 0 ? 0 : error_recode(err, code, "move '%s'", name);
}

/* --- after a write ---------------------------------------------------------------------------- */

static void remove_other(const struct object_place *p, struct mountpath *other,
                         const struct stored *newest)
{
    struct stored cur;
    struct error err = ERROR_INIT;
    int code = stored_read_at(p, other, &cur, &err);
    if (code == 0 && cur.exists && !cur.damaged &&
        version_compare(&cur.attr.version, &newest->attr.version) < 0 &&
        (code = sync_newest(p, newest, &err)) == 0)
        code = remove_copy(p, other, &err);
    if (code != 0) /* the resilver comes by, too */
        log_warn("older copy not removed", lstr("mountpath", other->path), lerr(&err));
}

void object_remove_others(const struct object_place *p)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set =
        mountpaths_current(p->store->config.mountpaths);
    struct stored newest;
    if (set->settled)
        return;
    object_lock(p);
    bool known = stored_read_at(p, p->mp, &newest, NULL) == 0 && newest.exists && !newest.damaged;
    for (size_t i = 0; i < set->count && known; i++) {
        if (set->all[i] != p->mp)
            remove_other(p, set->all[i], &newest);
    }
    object_unlock(p);
}
