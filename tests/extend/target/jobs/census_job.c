/* The job `census` on a target: counts the objects of buckets that have the property census. */
#include "target/jobs/job_base.h"
#include "target/store/summary.h"

static bool has_census(void *ctx, uint64_t bucket_id)
{
    const struct target *t = ctx;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, bucket_id);
    return b != NULL && b->props.census;
}

static int run(void *self, struct error *err)
{
    struct job_base *j = self;
    const struct summary_env env = {.ctx = j->target, .counts = has_census};
    struct summary found = {0};
    int code = summary_make(j->target->mountpaths, &env, &found, err);
    for (size_t i = 0; code == 0 && i < found.count; i++)
        job_tally_add(j->tally, found.rows[i].objects, found.rows[i].bytes);
    summary_done(&found);
    return code != 0 ? code : job_tally_end(j->tally, err);
}

const struct xaction_ops census_xaction =
    JOB_WORK("census", .size = sizeof(struct job_base), .done_word = "counted", .run = run);
