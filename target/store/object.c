#include "target/store/object_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fault.h"
#include "common/log.h"
#include "common/mem.h"
#include "hrw/hrw.h"
#include "io/meter.h"
#include "io/reader.h"
#include "target/disk/pin_set.h"
#include "target/format/attr_rank.h"
#include "target/format/ec_manifest.h"
#include "target/store/quarantine.h"

struct object_store *object_store_new(const struct object_store_config *config)
{
    struct object_store *s = xcalloc(1, sizeof *s);
    s->config = *config;
    for (size_t i = 0; i < OBJECT_STRIPES; i++)
        pthread_mutex_init(&s->stripes[i], NULL);
    s->pins = pin_sets_new();
    s->puts = metric_get(M_object_put_total, NULL);
    s->put_bytes = metric_get(M_object_put_bytes_total, NULL);
    s->deletes = metric_get(M_object_delete_total, NULL);
    return s;
}

void object_store_free(struct object_store *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < OBJECT_STRIPES; i++)
        pthread_mutex_destroy(&s->stripes[i]);
    pin_sets_free(s->pins);
    free(s);
}

void object_store_settle(struct object_store *s)
{
    for (size_t i = 0; i < OBJECT_STRIPES; i++) {
        pthread_mutex_lock(&s->stripes[i]);
        pthread_mutex_unlock(&s->stripes[i]);
    }
}

struct mountpaths *object_store_mountpaths(const struct object_store *s)
{
    return s->config.mountpaths;
}

bool object_job_hides(const struct object_store *s, const char *job_or_null)
{
    const struct object_env *env = s->config.env;
    return job_or_null != NULL && !env->job_committed(env->ctx, job_or_null);
}

int object_not_found(const char *name, struct error *err)
{
    return error_set(err, E_OBJECT_NOT_FOUND, "object '%s' does not exist", name);
}

int object_reserved(const struct stored *cur, struct error *err)
{
    return error_set(err, E_OBJECT_RESERVED, "object '%s' is being made by job '%s'",
                     cur->attr.name, cur->attr.job);
}

/* --- places ----------------------------------------------------------------------------------- */

int object_place_set(struct object_place *p, struct object_store *s, uint64_t bucket_id,
                     const char *name, struct error *err)
{
    p->store = s;
    p->set = mountpaths_current(s->config.mountpaths);
    p->bucket_id = bucket_id;
    p->name = name;
    object_path_set(&p->path, bucket_id, name);
    return mountpath_set_pick(p->set, bucket_id, name, &p->mp, err);
}

void object_place_done(struct object_place *p)
{
    mountpath_set_unref(p->set);
    p->set = NULL;
}

char *object_place_text(const struct object_place *p, const struct mountpath *mp)
{
    return xprintf("%s/.dfc/obj/%s", mp->path, p->path.text);
}

static pthread_mutex_t *stripe_of(const struct object_place *p)
{
    uint64_t key = hrw_key(p->bucket_id, p->name, strlen(p->name));
    return &p->store->stripes[key % OBJECT_STRIPES];
}

void object_lock(const struct object_place *p)
{
    pthread_mutex_lock(stripe_of(p));
}

void object_unlock(const struct object_place *p)
{
    pthread_mutex_unlock(stripe_of(p));
}

/* --- what is on disk -------------------------------------------------------------------------- */

void stored_copy(struct stored *to, const struct stored *from)
{
    *to = *from;
    attr_rebase(&to->attr, from->raw, to->raw);
}

int stored_read_at(const struct object_place *p, struct mountpath *mp, struct stored *out,
                   struct error *err)
{
    _cleanup_free_ char *path = object_place_text(p, mp);
    *out = (struct stored){.mp = mp};
    int errnum = fault_errno("disk.open");
    ssize_t len = errnum == 0 ? getxattr(path, ATTR_XATTR, out->raw, sizeof out->raw) : -1;
    if (len < 0 && errnum == 0)
        errnum = errno;
    if (errnum == ENOENT)
        return 0;
    out->exists = true;
    if (errnum == ENODATA || errnum == ERANGE) {
        out->damaged = out->unknown = true;
        return 0;
    }
    if (errnum != 0)
        return mountpath_failed(mp, error_errno(err, errnum, "read the attribute of '%s'", path));
    struct error why;
    int code = attr_decode(out->raw, (size_t)len, &out->attr, &why);
    if (code == E_CORRUPT) {
        out->damaged = out->unknown = true;
        out->attr = (struct attr){0};
        return 0;
    }
    if (code != 0) /* a newer release's: not ours to replace */
        return error_set(err, code, "'%s': %s", path, why.message);
    if (strcmp(out->attr.name, p->name) != 0)
        return error_set(err, E_HASH_COLLISION, "'%s' holds another name, '%s'", path,
                         out->attr.name);
    return 0;
}

/* Is `a` to be preferred to `b`?  Anything to nothing, anything readable to damage. */
static bool stored_beats(const struct stored *a, const struct stored *b)
{
    if (!a->exists || !b->exists)
        return a->exists;
    if (a->damaged || b->damaged)
        return !a->damaged;
    return version_compare(&a->attr.version, &b->attr.version) > 0;
}

static bool set_has(const struct mountpath_set *set, const struct mountpath *mp)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->all[i] == mp)
            return true;
    }
    return false;
}

static int stored_read_all(const struct object_place *p, const struct mountpath_set *set,
                           struct stored *out, struct error *err)
{
    for (size_t i = 0; i < set->count; i++) {
        struct stored other;
        if (set->all[i] == p->mp)
            continue;
        int code = stored_read_at(p, set->all[i], &other, err);
        if (code != 0)
            return code;
        bool unknown = out->unknown || other.unknown;
        if (stored_beats(&other, out))
            stored_copy(out, &other);
        out->unknown = unknown;
    }
    return out->exists ? 0 : mountpath_set_check_miss(set, p->bucket_id, p->name, err);
}

int stored_read(const struct object_place *p, struct stored *out, struct error *err)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set =
        mountpaths_current(p->store->config.mountpaths);
    if (set != p->set && !set_has(set, p->mp))
        return error_set(err, E_MOUNTPATH_DISABLED, "mountpath '%s' was taken out meanwhile",
                         p->mp->path);
    int code = stored_read_at(p, p->mp, out, err);
    return code != 0 || set->settled ? code : stored_read_all(p, set, out, err);
}

bool stored_hidden(const struct object_store *s, const struct stored *cur)
{
    return cur->exists && !cur->damaged && object_job_hides(s, cur->attr.job);
}

bool stored_visible(const struct object_store *s, const struct stored *cur)
{
    return cur->exists && !cur->damaged && !attr_is_tombstone(&cur->attr) && !stored_hidden(s, cur);
}

static int restore_index(const struct object_place *p, struct error *err)
{
    struct stored here;
    int code = stored_read_at(p, p->mp, &here, err);
    if (code != 0)
        return code;
    if (!here.exists || here.damaged)
        return index_delete(p->mp->index, p->bucket_id, p->name, err);
    struct index_record rec = index_record_of(&here.attr);
    return index_put(p->mp->index, p->bucket_id, p->name, &rec, err);
}

void object_restore_index(const struct object_place *p)
{
    struct error err = ERROR_INIT;
    if (restore_index(p, &err) == 0) {
        index_settled(p->mp->index, p->bucket_id, p->name);
        return;
    }
    log_error("index missed a change", lstr("mountpath", p->mp->path), lerr(&err));
    index_set_stale(p->mp->index, &err);
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Checks what was found under the open descriptor. */
static int object_take_any(const struct object_place *p, struct mountpath *mp, int fd,
                           struct object *o, struct error *err)
{
    struct stat st;
    ssize_t len = fgetxattr(fd, ATTR_XATTR, o->raw, sizeof o->raw);
    if (len < 0 && (errno == ENODATA || errno == ERANGE))
        return error_set(err, E_CORRUPT, "object '%s' on '%s' has lost its attribute", p->name,
                         mp->path);
    if (len < 0 || fstat(fd, &st) != 0)
        return error_errno(err, errno, "read the attribute of '%s' on '%s'", p->name, mp->path);
    int code = attr_decode(o->raw, (size_t)len, &o->attr, err);
    if (code != 0)
        return error_recode(err, code, "object '%s' on '%s'", p->name, mp->path);
    if (strcmp(o->attr.name, p->name) != 0)
        return object_not_found(p->name, err);
    if ((uint64_t)st.st_size != o->attr.size && st.st_size == 0 && quarantine_fd_is_no_room(fd))
        return error_set(err, E_NO_SPACE, "the bytes of object '%s' have found no room on '%s'",
                         p->name, mp->path);
    if ((uint64_t)st.st_size != o->attr.size)
        return error_set(err, E_CORRUPT, "object '%s' on '%s' has %llu bytes, not %llu", p->name,
                         mp->path, (unsigned long long)st.st_size,
                         (unsigned long long)o->attr.size);
    return 0;
}

static int object_take(const struct object_place *p, struct mountpath *mp, int fd, struct object *o,
                       struct error *err)
{
    int code = object_take_any(p, mp, fd, o, err);
    if (code == 0 && (attr_is_tombstone(&o->attr) || object_job_hides(p->store, o->attr.job)))
        return object_not_found(p->name, err);
    return code;
}

/* 0 or an errno; EAGAIN where the disk would have to be waited for. */
static int open_file(const struct object_place *p, const struct mountpath *mp, bool wait, int *fd)
{
    if (!wait && (*fd = reader_open_now(mp->reader, mp->obj_fd, p->path.text)) < 0)
        return errno;
    int errnum = fault_errno_at("disk.open", mp->path);
    if (errnum != 0)
        return errnum;
    if (wait)
        *fd = openat(mp->obj_fd, p->path.text, O_RDONLY | O_CLOEXEC);
    return *fd >= 0 ? 0 : errno;
}

static int object_open_how(const struct object_place *p, struct mountpath *mp, bool wait,
                           struct object *o, struct error *err)
{
    o->fd = -1;
    _cleanup_close_ int fd = -1;
    uint64_t began_us = reader_may_wait() ? clock_us() : 0;
    int errnum = open_file(p, mp, wait, &fd);
    if (began_us != 0)
        meter_count(mp->meter, METER_OPEN, began_us, 0);
    if (errnum == EAGAIN && !wait)
        return OBJECT_WAITS;
    if (errnum == ENOENT)
        return object_not_found(p->name, err);
    if (errnum != 0)
        return mountpath_failed(
            mp, error_errno(err, errnum, "open object '%s' on '%s'", p->name, mp->path));
    int code = object_take(p, mp, fd, o, err);
    if (code == 0)
        o->fd = steal_fd(&fd);
    return mountpath_failed(mp, code);
}

int object_open_at(const struct object_place *p, struct mountpath *mp, struct object *o,
                   struct error *err)
{
    return object_open_how(p, mp, true, o, err);
}

/* It may be on any mountpath, and on its way from one to another: nobody moves it meanwhile. */
static int open_anywhere(const struct object_place *p, struct object *o, struct mountpath **mp,
                         struct error *err)
{
    struct stored cur;
    object_lock(p);
    int code = stored_read(p, &cur, err);
    if (code == E_HASH_COLLISION)
        code = object_not_found(p->name, err);
    else if (code == 0)
        code = object_open_at(p, cur.mp, o, err);
    object_unlock(p);
    if (code == 0)
        *mp = cur.mp;
    return code;
}

/* *mp: where it lies, or who can be asked to wait. */
static int open_place(const struct object_place *p, bool wait, struct object *o,
                      struct mountpath **mp, struct error *err)
{
    *mp = p->mp;
    if (p->set->settled)
        return object_open_how(p, p->mp, wait, o, err);
    return wait ? open_anywhere(p, o, mp, err) : OBJECT_WAITS;
}

int object_open_for(struct object_store *s, uint64_t bucket_id, const char *name, bool wait,
                    struct object *o, struct reader **reader, struct error *err)
{
    _cleanup_place_ struct object_place p = {0};
    struct mountpath *mp;
    o->fd = -1;
    *reader = NULL;
    int code = object_place_set(&p, s, bucket_id, name, err);
    if (code == 0)
        code = open_place(&p, wait, o, &mp, err);
    while (code == E_OBJECT_NOT_FOUND && !mountpath_set_is_current(p.set)) { /* moved meanwhile? */
        object_place_done(&p);
        code = object_place_set(&p, s, bucket_id, name, err);
        if (code == 0)
            code = open_place(&p, wait, o, &mp, err);
    }
    if (code == 0 || code == OBJECT_WAITS)
        *reader = reader_ref(mp->reader);
    return code;
}

int object_open(struct object_store *s, uint64_t bucket_id, const char *name, struct object *o,
                struct error *err)
{
    struct reader *reader;
    int code = object_open_for(s, bucket_id, name, true, o, &reader, err);
    reader_unref(reader);
    return code;
}

void object_clone(const struct object *from, struct object *to)
{
    *to = *from;
    to->fd = -1;
    attr_rebase(&to->attr, from->raw, to->raw);
}

int object_head(struct object_store *s, uint64_t bucket_id, const char *name, struct object *o,
                struct error *err)
{
    struct reader *reader;
    int code = object_open_for(s, bucket_id, name, true, o, &reader, err);
    reader_unref(reader);
    if (o->fd >= 0)
        close(o->fd);
    o->fd = -1;
    return code;
}

/* --- what is here, for other targets ---------------------------------------------------------- */

int object_look(struct object_store *s, uint64_t bucket_id, const char *name,
                struct object_held *out, struct error *err)
{
    _cleanup_place_ struct object_place p = {0};
    struct stored cur;
    struct error why = ERROR_INIT;
    *out = (struct object_held){.found = false};
    int code = object_place_set(&p, s, bucket_id, name, err);
    if (code != 0)
        return code;
    object_lock(&p);
    code = stored_read(&p, &cur, &why);
    bool hollow = code == 0 && stored_is_hollow(&p, &cur);
    bool no_room = hollow && stored_has_no_room(&p, &cur);
    object_unlock(&p);
    if (code == E_HASH_COLLISION) /* another name's */
        return 0;
    if (code != 0)
        return error_set(err, code, "%s", why.message);
    out->unreadable = cur.exists && cur.damaged;
    if (cur.exists && !cur.damaged && stored_hidden(s, &cur))
        out->hidden_slices = ec_manifest_tag(&cur.attr);
    if (!cur.exists || cur.damaged || stored_hidden(s, &cur))
        return 0;
    *out = (struct object_held){.found = true,
                                .visible = !attr_is_tombstone(&cur.attr),
                                .rank = no_room ? 0 : attr_rank(&cur.attr),
                                .damaged = hollow,
                                .no_room = no_room,
                                .version = cur.attr.version,
                                .size = cur.attr.size,
                                .modified_ms = cur.attr.modified_ms,
                                .checksum = cur.attr.checksum,
                                .slices = ec_manifest_tag(&cur.attr),
                                .pending = attr_is_pending(&cur.attr),
                                .sent = !attr_is_pending(&cur.attr) && object_was_sent(&cur.attr)};
    return 0;
}

int object_open_any(const struct object_place *p, struct mountpath *mp, struct object *o,
                    struct error *err)
{
    _cleanup_close_ int fd = -1;
    o->fd = -1;
    int errnum = open_file(p, mp, true, &fd);
    if (errnum != 0)
        return mountpath_failed(
            mp, error_errno(err, errnum, "open object '%s' on '%s'", p->name, mp->path));
    int code = object_take_any(p, mp, fd, o, err);
    if (code == 0)
        o->fd = steal_fd(&fd);
    return mountpath_failed(mp, code);
}

static int open_held_locked(const struct object_place *p, struct object *o, struct error *err)
{
    struct stored cur;
    int code = stored_read(p, &cur, err);
    if (code != 0)
        return code;
    if (!cur.exists)
        return object_not_found(p->name, err);
    if (cur.damaged)
        return error_set(err, E_CORRUPT, "the attribute of object '%s' on '%s' cannot be read",
                         p->name, cur.mp->path);
    if (cur.attr.job != NULL)
        return object_reserved(&cur, err);
    return object_open_any(p, cur.mp, o, err);
}

int object_open_held(struct object_store *s, uint64_t bucket_id, const char *name, struct object *o,
                     struct error *err)
{
    _cleanup_place_ struct object_place p = {0};
    o->fd = -1;
    int code = object_place_set(&p, s, bucket_id, name, err);
    if (code != 0)
        return code;
    object_lock(&p);
    code = open_held_locked(&p, o, err);
    object_unlock(&p);
    return code;
}

/* Where the mountpaths are not settled, there may be more than one. */
static int drop_locked(struct object_place *p, const struct version *version, struct error *err)
{
    for (;;) {
        struct stored cur;
        int code = stored_read(p, &cur, err);
        if (code != 0 || !cur.exists || cur.damaged ||
            version_compare(&cur.attr.version, version) > 0)
            return code;
        p->mp = cur.mp;
        if ((code = object_remove_locked(p, err)) != 0)
            return code;
    }
}

int object_drop(struct object_store *s, uint64_t bucket_id, const char *name,
                const struct version *version, struct error *err)
{
    _cleanup_place_ struct object_place p = {0};
    int code = object_place_set(&p, s, bucket_id, name, err);
    if (code != 0)
        return code;
    object_lock(&p);
    code = drop_locked(&p, version, err);
    object_unlock(&p);
    return code;
}

/* --- what a write meets ----------------------------------------------------------------------- */

int object_check_owned(const struct object_place *p, struct error *err)
{
    const struct object_env *env = p->store->config.env;
    if (env->owns == NULL || env->owns(env->ctx, p->bucket_id, p->name))
        return 0;
    return error_set(err, E_STALE_MAP,
                     "object '%s' has another owner since the request began; ask the proxy again",
                     p->name);
}

const struct attr *object_present(const struct object_place *p, const struct stored *cur,
                                  const struct object_held *earlier, struct attr *scratch)
{
    bool here = cur->exists && !cur->damaged;
    if (!earlier->found || (here && version_compare(&cur->attr.version, &earlier->version) >= 0))
        return stored_visible(p->store, cur) ? &cur->attr : NULL;
    *scratch = (struct attr){.name = p->name,
                             .version = earlier->version,
                             .size = earlier->size,
                             .modified_ms = earlier->modified_ms};
    return earlier->visible ? scratch : NULL;
}
