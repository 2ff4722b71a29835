#include "target/repair_job.h"

#include "common/jsonx.h"
#include "common/mem.h"
#include "target/job_stop.h"
#include "target/job_tally.h"
#include "target/repair.h"
#include "target/target.h"

struct repair_job {
    struct target *target;
    uint64_t placed, lagged;
    struct job_tally *tally;
    struct job_stop stop;
};

static int job_open(void *host, const struct job *job, void **self, struct error *err)
{
    uint64_t placed, lagged;
    int code = json_need_u64(job->spec, "spec", "placed", &placed, err);
    if (code == 0)
        code = json_need_u64(job->spec, "spec", "lagged", &lagged, err);
    if (code != 0)
        return error_wrap(err, "job '%s'", job->id);
    struct repair_job *r = xcalloc(1, sizeof *r);
    r->target = host;
    r->placed = placed;
    r->lagged = lagged;
    r->tally = job_tally_new("repaired");
    job_stop_init(&r->stop);
    *self = r;
    return 0;
}

static int job_run(void *self, struct error *err)
{
    struct repair_job *r = self;
    const struct repair run = {.target = r->target,
                               .placed = r->placed,
                               .lagged = r->lagged,
                               .stop = &r->stop,
                               .tally = r->tally};
    return repair_run(&run, err);
}

static void job_stop(void *self)
{
    struct repair_job *r = self;
    job_stop_now(&r->stop);
}

static json_t *job_status(void *self)
{
    const struct repair_job *r = self;
    return job_tally_status(r->tally);
}

static void job_free(void *self)
{
    struct repair_job *r = self;
    job_tally_free(r->tally);
    job_stop_done(&r->stop);
    free(r);
}

const struct xaction_ops repair_xaction = {
    .kind = "repair",
    .open = job_open,
    .prepare = xaction_nothing,
    .run = job_run,
    .stop = job_stop,
    .commit = xaction_nothing,
    .undo = xaction_nothing,
    .status = job_status,
    .free = job_free,
};
