#include "target/store/known.h"

#include "common/mem.h"
#include "target/disk/claim.h"
#include "target/store/quarantine.h"

enum { KNOWN_BYTES = 8 << 10 }; /* a file without bytes: its attribute, its entry, its record */

int object_check_room(struct object_store *s, uint64_t bucket_id, const char *name, uint64_t size,
                      bool frees, struct error *err)
{
    _cleanup_place_ struct object_place p = {0};
    int code = object_place_set(&p, s, bucket_id, name, err);
    if (code != 0)
        return code;
    const struct space_limits *limits = &s->config.space;
    return frees ? claim_admit_known(limits, p.mp->path, p.mp->root_fd, size, err)
                 : claim_admit(limits, p.mp->path, p.mp->root_fd, size, err);
}

static int read_locked(const struct object_place *p, struct stored *cur, struct error *err)
{
    object_lock(p);
    int code = stored_read(p, cur, err);
    object_unlock(p);
    return code;
}

int known_admit(const struct object_place *p, struct error *err)
{
    struct stored cur;
    int code = read_locked(p, &cur, err);
    if (code != 0 || (cur.exists && cur.mp == p->mp))
        return code;
    return claim_admit_known(&p->store->config.space, p->mp->path, p->mp->root_fd, KNOWN_BYTES,
                             err);
}

/* Where it lies on another mountpath its resilver meets it. */
static bool is_damaged_here(const struct object_place *p, const struct stored *cur)
{
    return cur->exists && cur->damaged && cur->mp == p->mp;
}

int known_set_damaged_aside(const struct object_place *p, struct error *err)
{
    struct stored cur;
    char job[ATTR_JOB_MAX + 1];
    bool lacking;
    int code = read_locked(p, &cur, err);
    if (code != 0 || !is_damaged_here(p, &cur))
        return code;
    _cleanup_free_ char *path = object_place_text(p, p->mp);
    if (quarantine_look(path, job) == QUARANTINE_STUB)
        return 0;
    return object_check(p->store, p->bucket_id, p->name, &lacking, err);
}

int known_mark(const struct object_place *p, const struct stored *cur, int fd, struct error *err)
{
    _cleanup_free_ char *path = is_damaged_here(p, cur) ? object_place_text(p, p->mp) : NULL;
    return quarantine_mark_no_room(p->mp, path, fd, err);
}
