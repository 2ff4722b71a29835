/* The job `rebalance` on a target: rebalance.h, for the owners that its document names. */
#include "common/jsonx.h"
#include "target/jobs/job_base.h"
#include "target/jobs/rebalance.h"

struct rebalance_job {
    struct job_base base;
    uint64_t placed;
};

static int begin(void *self, struct error *err)
{
    struct rebalance_job *r = self;
    return json_need_u64(r->base.job->spec, "spec", "placed", &r->placed, err);
}

static int run(void *self, struct error *err)
{
    struct rebalance_job *r = self;
    const struct rebalance work = {.target = r->base.target,
                                   .placed = r->placed,
                                   .copier = r->base.copier,
                                   .stop = &r->base.stop,
                                   .tally = r->base.tally};
    return rebalance_run(&work, err);
}

const struct xaction_ops rebalance_xaction =
    JOB_WORK("rebalance", .size = sizeof(struct rebalance_job), .done_word = "moved", .sends = true,
             .begin = begin, .run = run);
