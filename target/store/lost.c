/* Objects whose files somebody has removed behind the target's back.  The index still has them, so
 * that a look at it, which is asked nothing else of objects, tells them from those that never were.
 * While the index cannot be relied on the files alone say what there is; but where the mountpath
 * itself is not whole any more, nothing tells what a missing file stands for, and it counts as
 * lost. */
#include "target/store/object_parts.h"

#include "common/log.h"

struct lost {
    struct mountpath *mp;
    struct version version; /* the greatest, of objects and tombstones */
    bool found, object;     /* and is any of them an object that is shown? */
    bool unknown;           /* mp itself is damaged: it may have been */
};

/* What one mountpath's index says, if it is greater. */
static void look_at(const struct object_place *p, struct mountpath *mp, struct lost *lost)
{
    struct index_record rec;
    char job[ATTR_JOB_MAX + 1];
    if (index_check(mp->index, NULL) != 0) {
        if (!lost->found && !mountpath_is_whole(mp))
            *lost = (struct lost){.mp = mp, .unknown = true};
        return;
    }
    if (index_find(mp->index, p->bucket_id, p->name, &rec, job, NULL) != 1 ||
        (lost->found && version_compare(&rec.version, &lost->version) <= 0))
        return;
    *lost = (struct lost){.mp = mp,
                          .version = rec.version,
                          .found = true,
                          .object = !rec.tombstone && !object_job_hides(p->store, rec.job)};
}

/* The name has no file: what do the indexes of these mountpaths have? */
static struct lost look(const struct object_place *p)
{
    struct lost lost = {0};
    for (size_t i = 0; i < p->set->count; i++) {
        if (!p->set->settled || p->set->all[i] == p->mp)
            look_at(p, p->set->all[i], &lost);
    }
    return lost;
}

static bool is_lost(const struct lost *l)
{
    return l->object || l->unknown;
}

bool stored_lost(const struct object_place *p, const struct stored *cur, struct version *version)
{
    if (cur->exists)
        return false;
    struct lost lost = look(p);
    *version = lost.version;
    return lost.found;
}

bool stored_lost_object(const struct object_place *p, const struct stored *cur)
{
    return !cur->exists && look(p).object;
}

bool object_seems_lost(struct object_store *s, uint64_t bucket_id, const char *name)
{
    _cleanup_place_ struct object_place p = {0};
    if (object_place_set(&p, s, bucket_id, name, NULL) != 0)
        return true;
    const struct lost lost = look(&p);
    return is_lost(&lost);
}

static int explain_locked(const struct object_place *p, struct error *err)
{
    struct stored cur;
    int code = stored_read(p, &cur, err);
    /* Another object lies there, and this one is known: no two of one hash, but a file that was
     * moved. */
    const bool moved = code == E_HASH_COLLISION;
    struct lost lost = moved || (code == 0 && !cur.exists) ? look(p) : (struct lost){0};
    if (moved ? !lost.object : code != 0 || !is_lost(&lost))
        return code != 0 ? code : object_not_found(p->name, err);
    atomic_store(&lost.mp->suspect, true);
    log_error("object has lost its file", lstr("mountpath", lost.mp->path), lstr("name", p->name));
    error_set(err, E_CORRUPT, "the file of object '%s' on '%s' %s behind the target's back",
              p->name, lost.mp->path,
              moved          ? "is gone: it was replaced by another object's"
              : lost.unknown ? "may be gone: the mountpath itself was damaged"
                             : "is gone: it was removed");
    return mountpath_failed(lost.mp, E_CORRUPT);
}

int object_explain_miss(struct object_store *s, uint64_t bucket_id, const char *name,
                        struct error *err)
{
    _cleanup_place_ struct object_place p = {0};
    int code = object_place_set(&p, s, bucket_id, name, err);
    if (code != 0)
        return code;
    object_lock(&p);
    code = explain_locked(&p, err);
    object_unlock(&p);
    return code;
}
