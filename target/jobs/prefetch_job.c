/* The job `prefetch` (xaction/objects_spec.h): objects of a bucket with a backend are brought here
 * before they are asked for, by the targets that own them.  What is here is passed over; where the
 * bucket's `validate` would have a reader ask the backend, the job asks, and brings what has
 * changed. What the backend does not have counts as missing.
 *
 * It begins again after a restart, and then passes over what it has brought. */
#include "target/cold/here.h"
#include "target/jobs/objects_walk.h"
#include "target/store/job_pace.h"

/* What lasts for the run, … */
struct prefetch {
    struct job_base *job;
    struct job_pace pace;
    const struct bucket *bucket; /* … and for one batch */
};

static void prefetch_one(void *ctx, const char *name)
{
    struct prefetch *p = ctx;
    struct job_tally *tally = p->job->tally;
    struct error err = ERROR_INIT;
    enum cold_here what;
    uint64_t bytes;
    int code = cold_make_here(p->job->target, p->bucket, name, &p->pace, &what, &bytes, &err);
    if (p->job->stop.wanted && code != 0)
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

static int prefetch_batch(void *ctx, const char *const *names, size_t n, struct error *err)
{
    struct prefetch *p = ctx;
    struct job_base *j = p->job;
    uint64_t parallel = j->spec->parallel;
    _cleanup_state_ const struct cluster_state *s = state_current(j->target->state);
    p->bucket = bmd_bucket_by_id(&s->bmd, j->plan.input_bucket_id);
    if (p->bucket == NULL || p->bucket->props.backend == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "the bucket was destroyed while the job ran");
    if (parallel == 0)
        parallel = param_live(j->target->params.prefetch_parallel);
    return objects_walk_batch(j, (unsigned)parallel, names, n, prefetch_one, p, err);
}

static int run(void *self, struct error *err)
{
    struct prefetch p = {.job = self};
    const struct objects_spec *spec = p.job->spec;
    job_pace_init(&p.pace, spec->rate_bytes_s, &p.job->stop);
    int code = spec->which == OBJECTS_PREFIX
                   ? objects_walk_listed(p.job, true, prefetch_batch, &p, err)
                   : objects_walk(p.job, prefetch_batch, &p, err);
    job_pace_done(&p.pace);
    return code;
}

const struct xaction_ops prefetch_xaction =
    JOB_WORK("prefetch", .size = sizeof(struct job_base), .done_word = "brought here",
             .over_objects = true, .run = run);
