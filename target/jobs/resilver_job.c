#include "target/jobs/resilver_job.h"

#include "common/mem.h"
#include "target/scrub/resilver.h"
#include "target/jobs/tally_job.h"
#include "target/node/target.h"

static int job_open(void *host, const struct job *job, void **self, struct error *err)
{
    (void)job;
    (void)err;
    struct tally_job *r = xcalloc(1, sizeof *r);
    tally_job_init(r, host, "moved");
    *self = r;
    return 0;
}

static int job_run(void *self, struct error *err)
{
    struct tally_job *r = self;
    return resilver_run(r->target->store, &r->stop, r->tally, err);
}

const struct xaction_ops resilver_xaction =
    XACTION_WORK("resilver", job_open, job_run, tally_job_stop, tally_job_status, tally_job_free);
