#include "target/jobs/trim_copies_job.h"

#include "common/mem.h"
#include "target/jobs/trim_copies.h"
#include "target/jobs/tally_job.h"
#include "target/node/target.h"

struct trim_copies_job {
    struct tally_job base;
    struct lower_fence fence;
};

static int job_open(void *host, const struct job *job, void **self, struct error *err)
{
    struct lower_fence fence;
    if (lower_fence_from_json(job->spec, &fence, err) != 0)
        return error_wrap(err, "job '%s'", job->id);
    struct trim_copies_job *made = xcalloc(1, sizeof *made);
    made->fence = fence;
    tally_job_init(&made->base, host, "removed");
    *self = made;
    return 0;
}

static int job_run(void *self, struct error *err)
{
    struct trim_copies_job *m = self;
    const struct trim_copies run = {
        .target = m->base.target, .fence = m->fence, .stop = &m->base.stop, .tally = m->base.tally};
    return trim_copies_run(&run, err);
}

const struct xaction_ops trim_copies_xaction =
    XACTION_WORK("mirror", job_open, job_run, tally_job_stop, tally_job_status, tally_job_free);
