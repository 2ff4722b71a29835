/* The job `trim_copies` on a target: trim_copies.h, for the fence that its document names. */
#include "target/jobs/job_base.h"
#include "target/jobs/trim_copies.h"

struct trim_copies_job {
    struct job_base base;
    struct copies_reduce_fence fence;
};

static int begin(void *self, struct error *err)
{
    struct trim_copies_job *m = self;
    return copies_reduce_fence_from_json(m->base.job->spec, &m->fence, err);
}

static int run(void *self, struct error *err)
{
    struct trim_copies_job *m = self;
    const struct trim_copies work = {
        .target = m->base.target, .fence = m->fence, .stop = &m->base.stop, .tally = m->base.tally};
    return trim_copies_run(&work, err);
}

const struct xaction_ops trim_copies_xaction =
    JOB_WORK("mirror", .size = sizeof(struct trim_copies_job), .done_word = "removed",
             .begin = begin, .run = run);
