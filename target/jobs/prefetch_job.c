#include "target/jobs/prefetch_job.h"

#include "common/mem.h"
#include "io/pool.h"
#include "target/cold/here.h"
#include "target/cold/names.h"
#include "target/store/job_pace.h"
#include "target/jobs/objects_job.h"

struct prefetch_job {
    struct objects_job base; /* the first: objects_job_status() */
    struct job_pace pace;
};

static void job_free(void *self)
{
    struct prefetch_job *j = self;
    job_pace_done(&j->pace);
    objects_job_done(&j->base);
    free(j);
}

static int job_open(void *host, const struct job *job, void **self, struct error *err)
{
    struct prefetch_job *j = xcalloc(1, sizeof *j);
    int code = objects_job_init(&j->base, host, job, "brought here", err);
    job_pace_init(&j->pace, code == 0 ? j->base.spec->rate_bytes_s : 0, &j->base.stop);
    if (code == 0)
        *self = j;
    else
        job_free(j);
    return code;
}

/* --- one object ------------------------------------------------------------------------------- */

static void prefetch_one(struct prefetch_job *j, const struct bucket *b, const char *name)
{
    struct job_tally *tally = j->base.tally;
    struct error err = ERROR_INIT;
    enum cold_here what;
    uint64_t bytes;
    int code = cold_make_here(j->base.target, b, name, &j->pace, &what, &bytes, &err);
    if (j->base.stop.wanted && code != 0)
        return;
    if (code != 0)
        job_tally_fail(tally, name, &err);
    else if (what == COLD_NOWHERE)
        job_tally_missed(tally, name, "the backend does not have it");
    else if (what == COLD_HERE)
        job_tally_skipped(tally);
    else
        job_tally_done(tally, bytes);
}

/* --- all of them ------------------------------------------------------------------------------ */

struct batch {
    struct prefetch_job *job;
    const struct bucket *bucket;
    const char *const *names;
};

static int prefetch_nth(void *ctx, size_t i, struct error *err)
{
    const struct batch *b = ctx;
    struct prefetch_job *j = b->job;
    if (j->base.stop.wanted)
        return error_set(err, E_ABORTED, "job '%s' was stopped", j->base.job->id);
    prefetch_one(j, b->bucket, b->names[i]);
    return job_tally_hopeless(j->base.tally) ? job_tally_end(j->base.tally, err) : 0;
}

static int prefetch_batch(void *ctx, const char *const *names, size_t n, struct error *err)
{
    struct prefetch_job *j = ctx;
    uint64_t parallel = j->base.spec->parallel;
    _cleanup_state_ const struct cluster_state *s = state_current(j->base.target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, j->base.plan.input_bucket_id);
    if (b == NULL || b->props.backend == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "the bucket was destroyed while the job ran");
    if (parallel == 0)
        parallel = j->base.target->params.prefetch_parallel;
    struct batch batch = {.job = j, .bucket = b, .names = names};
    return parallel_for("prefetch", (unsigned)parallel, n, prefetch_nth, &batch, err);
}

/* --- what the backend lists ------------------------------------------------------------------- */

static int prefetch_page(void *ctx, const char *const *names, size_t n, struct error *err)
{
    struct prefetch_job *j = ctx;
    job_tally_expect(j->base.tally, n);
    return prefetch_batch(j, names, n, err);
}

/* Each target goes through all names and takes its own; how many there are is known at the end. */
static int prefetch_listed(struct prefetch_job *j, struct error *err)
{
    const struct cold_names names = {.target = j->base.target,
                                     .bucket_id = j->base.plan.input_bucket_id,
                                     .prefix = j->base.spec->prefix,
                                     .job = j->base.job,
                                     .backend_only = true,
                                     .is_ours = objects_job_is_ours,
                                     .ctx = j,
                                     .stop = &j->base.stop.wanted};
    int code = cold_names_each(&names, prefetch_page, j, err);
    return code != 0 ? code : job_tally_end(j->base.tally, err);
}

static int job_run(void *self, struct error *err)
{
    struct prefetch_job *j = self;
    if (j->base.spec->which == OBJECTS_PREFIX)
        return prefetch_listed(j, err);
    return objects_job_run(&j->base, prefetch_batch, j, err);
}

const struct xaction_ops prefetch_xaction =
    XACTION_WORK("prefetch", job_open, job_run, objects_job_stop, objects_job_status, job_free);
