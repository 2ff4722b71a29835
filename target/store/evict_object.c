/* Objects that can be read again somewhere else: when they were used, and their end, which leaves
 * no tombstone. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "target/disk/version_floor.h"
#include "target/store/object_parts.h"

static void touch(const struct object_place *p, int64_t used_s)
{
    const struct timespec times[] = {{.tv_sec = (time_t)used_s}, {.tv_nsec = UTIME_OMIT}};
    /* One that is gone, or lies elsewhere, has no time to be set. */
    (void)utimensat(p->mp->obj_fd, p->path.text, times, 0);
}

void object_touch(struct object_store *s, uint64_t bucket_id, const char *name, int64_t used_s)
{
    _cleanup_place_ struct object_place p = {0};
    if (object_place_set(&p, s, bucket_id, name, NULL) == 0)
        touch(&p, used_s);
}

static bool used_at(const struct object_path *path, const struct mountpath *mp, int64_t *used_s)
{
    struct stat st;
    if (fstatat(mp->obj_fd, path->text, &st, 0) != 0)
        return false;
    *used_s = (int64_t)st.st_atim.tv_sec;
    return true;
}

bool object_used_at(struct mountpath *mp, uint64_t bucket_id, const char *name, int64_t *used_s)
{
    struct object_path path;
    object_path_set(&path, bucket_id, name);
    return used_at(&path, mp, used_s);
}

/* What goes. */
struct evicted {
    int64_t used_s;                /* not after this … */
    const struct version *version; /* … and of this version; NULL: of any */
};

static bool may_go(const struct object_place *p, const struct evicted *e, const struct stored *cur)
{
    int64_t now_s;
    return used_at(&p->path, p->mp, &now_s) && now_s <= e->used_s &&
           (e->version == NULL || version_compare(e->version, &cur->attr.version) == 0);
}

/* Its version must not come again for other bytes. */
static int evict_locked(const struct object_place *p, const struct evicted *e, bool *gone,
                        struct error *err)
{
    struct stored cur;
    int code = stored_read(p, &cur, err);
    if (code != 0 || cur.mp != p->mp || !stored_visible(p->store, &cur) ||
        attr_is_pending(&cur.attr) || !may_go(p, e, &cur))
        return code;
    code = version_floor_cover(p->store->config.mountpaths, cur.attr.version.counter, err);
    if (code == 0)
        code = object_remove_locked(p, err);
    *gone = code == 0;
    return code;
}

static int evict(struct object_store *s, uint64_t bucket_id, const char *name,
                 const struct evicted *e, bool *gone, struct error *err)
{
    _cleanup_place_ struct object_place p = {0};
    *gone = false;
    int code = object_place_set(&p, s, bucket_id, name, err);
    if (code == E_MOUNTPATH_DISABLED || !p.set->settled) /* there may be another copy elsewhere */
        return 0;
    object_lock(&p);
    code = evict_locked(&p, e, gone, err);
    object_unlock(&p);
    return code;
}

int object_evict(struct object_store *s, uint64_t bucket_id, const char *name, int64_t used_s,
                 bool *gone, struct error *err)
{
    return evict(s, bucket_id, name, &(struct evicted){.used_s = used_s}, gone, err);
}

int object_evict_version(struct object_store *s, uint64_t bucket_id, const char *name,
                         const struct version *version, bool *gone, struct error *err)
{
    const struct evicted e = {.used_s = INT64_MAX, .version = version};
    return evict(s, bucket_id, name, &e, gone, err);
}
