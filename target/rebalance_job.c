#include "target/rebalance_job.h"

#include "common/jsonx.h"
#include "common/mem.h"
#include "target/job_stop.h"
#include "target/job_tally.h"
#include "target/rebalance.h"
#include "target/target.h"

struct rebalance_job {
    struct target *target;
    uint64_t placed;
    struct object_copier *copier;
    struct job_tally *tally;
    struct job_stop stop;
};

static int job_open(void *host, const struct job *job, void **self, struct error *err)
{
    uint64_t placed;
    int code = json_need_u64(job->spec, "spec", "placed", &placed, err);
    if (code != 0)
        return error_wrap(err, "job '%s'", job->id);
    struct rebalance_job *r = xcalloc(1, sizeof *r);
    r->target = host;
    r->placed = placed;
    r->copier = object_copier_new(host);
    r->tally = job_tally_new("moved");
    job_stop_init(&r->stop);
    *self = r;
    return 0;
}

static int job_run(void *self, struct error *err)
{
    struct rebalance_job *r = self;
    const struct rebalance run = {.target = r->target,
                                  .placed = r->placed,
                                  .copier = r->copier,
                                  .stop = &r->stop,
                                  .tally = r->tally};
    return rebalance_run(&run, err);
}

static void job_stop(void *self)
{
    struct rebalance_job *r = self;
    job_stop_now(&r->stop);
    object_copier_stop(r->copier);
}

static json_t *job_status(void *self)
{
    const struct rebalance_job *r = self;
    return job_tally_status(r->tally);
}

static void job_free(void *self)
{
    struct rebalance_job *r = self;
    object_copier_free(r->copier);
    job_tally_free(r->tally);
    job_stop_done(&r->stop);
    free(r);
}

const struct xaction_ops rebalance_xaction = {
    .kind = "rebalance",
    .open = job_open,
    .prepare = xaction_nothing,
    .run = job_run,
    .stop = job_stop,
    .commit = xaction_nothing,
    .undo = xaction_nothing,
    .status = job_status,
    .free = job_free,
};
