/* Objects whose files somebody has removed behind the target's back.  The index still has them, so
 * that a look at it, which is asked nothing else of objects, tells them from those that never were.
 */
#include "target/object_internal.h"

#include "common/log.h"

/* The record on one mountpath, whatever it says. */
static bool record_at(const struct object_place *p, struct mountpath *mp, struct index_record *rec,
                      char job[static ATTR_JOB_MAX + 1])
{
    return index_check(mp->index, NULL) == 0 &&
           index_find(mp->index, p->bucket_id, p->name, rec, job, NULL) == 1;
}

struct lost {
    struct mountpath *mp;
    struct version version; /* the greatest, of objects and tombstones */
    bool found, object;     /* and is any of them an object that is shown? */
};

/* The name has no file: what do the indexes of these mountpaths have? */
static struct lost look(const struct object_place *p)
{
    struct lost lost = {0};
    for (size_t i = 0; i < p->set->count; i++) {
        struct mountpath *mp = p->set->all[i];
        struct index_record rec;
        char job[ATTR_JOB_MAX + 1];
        if ((p->set->settled && mp != p->mp) || !record_at(p, mp, &rec, job) ||
            (lost.found && version_compare(&rec.version, &lost.version) <= 0))
            continue;
        lost = (struct lost){.mp = mp,
                             .version = rec.version,
                             .found = true,
                             .object = !rec.tombstone && !object_job_hides(p->store, rec.job)};
    }
    return lost;
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
    return object_place_set(&p, s, bucket_id, name, NULL) == 0 && look(&p).object;
}

static int explain_locked(const struct object_place *p, struct error *err)
{
    struct stored cur;
    int code = stored_read(p, &cur, err);
    struct lost lost = code == 0 && !cur.exists ? look(p) : (struct lost){0};
    if (code != 0 || !lost.object)
        return code != 0 ? code : object_not_found(p->name, err);
    atomic_store(&lost.mp->suspect, true);
    log_error("object has lost its file", lstr("mountpath", lost.mp->path), lstr("name", p->name));
    return mountpath_failed(lost.mp,
                            error_set(err, E_CORRUPT,
                                      "the file of object '%s' on '%s' is gone: it was removed "
                                      "behind the target's back",
                                      p->name, lost.mp->path));
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
