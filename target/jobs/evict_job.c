#include "target/jobs/evict_job.h"

#include "common/mem.h"
#include "target/jobs/objects_job.h"

enum { PAUSE_MS = 500 };

static void job_free(void *self)
{
    struct objects_job *j = self;
    objects_job_done(j);
    free(j);
}

static int job_open(void *host, const struct job *job, void **self, struct error *err)
{
    struct objects_job *j = xcalloc(1, sizeof *j);
    int code = objects_job_init(j, host, job, "let go of", err);
    if (code == 0)
        *self = j;
    else
        job_free(j);
    return code;
}

static void evict_one(struct objects_job *j, const char *name)
{
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
static int wait_until_settled(struct objects_job *j, struct error *err)
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
            return error_set(err, E_ABORTED, "job '%s' was stopped", j->job->id);
    }
    job_tally_wait(j->tally, NULL);
    return 0;
}

static int evict_batch(void *ctx, const char *const *names, size_t n, struct error *err)
{
    struct objects_job *j = ctx;
    int code = wait_until_settled(j, err);
    for (size_t i = 0; i < n && code == 0; i++) {
        if (j->stop.wanted)
            return error_set(err, E_ABORTED, "job '%s' was stopped", j->job->id);
        evict_one(j, names[i]);
        if (job_tally_hopeless(j->tally))
            code = job_tally_end(j->tally, err);
    }
    return code;
}

static int job_run(void *self, struct error *err)
{
    struct objects_job *j = self;
    return objects_job_run(j, evict_batch, j, err);
}

const struct xaction_ops evict_xaction =
    XACTION_WORK("evict", job_open, job_run, objects_job_stop, objects_job_status, job_free);
