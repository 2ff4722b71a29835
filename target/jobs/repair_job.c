#include "target/jobs/repair_job.h"

#include <stdlib.h>

#include "common/jsonx.h"
#include "common/mem.h"
#include "target/jobs/repair.h"
#include "target/jobs/tally_job.h"
#include "target/node/target.h"

struct repair_job {
    struct tally_job base;
    char *id;
    uint64_t placed, lagged;
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
    tally_job_init(&r->base, host, "repaired");
    r->id = xstrdup(job->id);
    r->placed = placed;
    r->lagged = lagged;
    *self = r;
    return 0;
}

static int job_run(void *self, struct error *err)
{
    struct repair_job *r = self;
    const struct repair run = {.target = r->base.target,
                               .job_id = r->id,
                               .placed = r->placed,
                               .lagged = r->lagged,
                               .stop = &r->base.stop,
                               .tally = r->base.tally};
    return repair_run(&run, err);
}

static void job_free(void *self)
{
    struct repair_job *r = self;
    free(r->id);
    tally_job_free(r);
}

const struct xaction_ops repair_xaction =
    XACTION_WORK("repair", job_open, job_run, tally_job_stop, tally_job_status, job_free);
