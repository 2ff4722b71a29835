/* The job `evict` (xaction/objects_spec.h): what is kept here of a backend's objects is let go of,
 * and makes room; the backend's are not touched, and the next reader has them fetched again.  What
 * is not here counts as missing.  While mountpaths are not settled nothing can go: the job waits.
 */
#include "target/jobs/objects_walk.h"

enum { PAUSE_MS = 500 };

static void evict_one(void *self, const char *name)
{
    struct job_base *j = self;
    struct object_store *store = j->target->store;
    uint64_t bucket_id = j->plan.input_bucket_id;
    struct object o;
    struct error err = ERROR_INIT;
    bool gone = false;
    int code = object_head(store, bucket_id, name, &o, &err);
    if (code == 0)
        code = object_evict(store, bucket_id, name, INT64_MAX, &gone, &err);
    if (code == E_OBJECT_NOT_FOUND)
        job_tally_missing(j->tally);
    else if (code != 0)
        job_tally_fail(j->tally, name, &err);
    else if (gone)
        job_tally_done(j->tally, o.attr.size);
    else
        job_tally_skipped(j->tally);
}

/* There may be another copy elsewhere, which would be served again. */
static int wait_until_settled(struct job_base *j, struct error *err)
{
    struct error why;
    error_set(&why, E_MOUNTPATH_STATE, "a change of mountpaths is not through yet");
    for (;;) {
        _cleanup_mountpath_set_ const struct mountpath_set *set =
            mountpaths_current(j->target->mountpaths);
        if (set->settled)
            break;
        job_tally_wait(j->tally, &why);
        if (!job_stop_pause(&j->stop, PAUSE_MS))
            return job_base_check(j, err);
    }
    job_tally_wait(j->tally, NULL);
    return 0;
}

static int evict_batch(void *ctx, const char *const *names, size_t n, struct error *err)
{
    struct job_base *j = ctx;
    int code = wait_until_settled(j, err);
    return code != 0 ? code : objects_walk_batch(j, 1, names, n, evict_one, j, err);
}

static int run(void *self, struct error *err)
{
    return objects_walk(self, evict_batch, self, err);
}

const struct xaction_ops evict_xaction =
    JOB_WORK("evict", .size = sizeof(struct job_base), .done_word = "let go of",
             .over_objects = true, .run = run);
