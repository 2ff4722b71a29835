/* The job `repair` on a target: repair.h, for the owners and lags that its document names. */
#include "common/jsonx.h"
#include "target/jobs/job_base.h"
#include "target/jobs/repair.h"

struct repair_job {
    struct job_base base;
    uint64_t placed, lagged;
};

static int begin(void *self, struct error *err)
{
    struct repair_job *r = self;
    json_t *spec = r->base.job->spec;
    int code = json_need_u64(spec, "spec", "placed", &r->placed, err);
    return code != 0 ? code : json_need_u64(spec, "spec", "lagged", &r->lagged, err);
}

static int run(void *self, struct error *err)
{
    struct repair_job *r = self;
    const struct repair work = {.target = r->base.target,
                                .job_id = r->base.job->id,
                                .placed = r->placed,
                                .lagged = r->lagged,
                                .stop = &r->base.stop,
                                .tally = r->base.tally};
    return repair_run(&work, err);
}

const struct xaction_ops repair_xaction =
    JOB_WORK("repair", .size = sizeof(struct repair_job), .done_word = "repaired", .begin = begin,
             .run = run);
