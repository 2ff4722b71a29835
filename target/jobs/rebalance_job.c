#include "target/jobs/rebalance_job.h"

#include "common/jsonx.h"
#include "common/mem.h"
#include "target/jobs/rebalance.h"
#include "target/jobs/tally_job.h"
#include "target/node/target.h"

struct rebalance_job {
    struct tally_job base;
    uint64_t placed;
    struct object_copier *copier;
};

static int job_open(void *host, const struct job *job, void **self, struct error *err)
{
    uint64_t placed;
    int code = json_need_u64(job->spec, "spec", "placed", &placed, err);
    if (code != 0)
        return error_wrap(err, "job '%s'", job->id);
    struct rebalance_job *r = xcalloc(1, sizeof *r);
    tally_job_init(&r->base, host, "moved");
    r->placed = placed;
    r->copier = object_copier_new(host);
    *self = r;
    return 0;
}

static int job_run(void *self, struct error *err)
{
    struct rebalance_job *r = self;
    const struct rebalance run = {.target = r->base.target,
                                  .placed = r->placed,
                                  .copier = r->copier,
                                  .stop = &r->base.stop,
                                  .tally = r->base.tally};
    return rebalance_run(&run, err);
}

static void job_stop(void *self)
{
    struct rebalance_job *r = self;
    tally_job_stop(r);
    object_copier_stop(r->copier);
}

static void job_free(void *self)
{
    struct rebalance_job *r = self;
    object_copier_free(r->copier);
    tally_job_free(r);
}

const struct xaction_ops rebalance_xaction =
    XACTION_WORK("rebalance", job_open, job_run, job_stop, tally_job_status, job_free);
