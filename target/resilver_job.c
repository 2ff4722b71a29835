#include "target/resilver_job.h"

#include "common/mem.h"
#include "target/job_stop.h"
#include "target/job_tally.h"
#include "target/resilver.h"
#include "target/target.h"

struct resilver_job {
    struct target *target;
    struct job_tally *tally;
    struct job_stop stop;
};

static int job_open(void *host, const struct job *job, void **self, struct error *err)
{
    (void)job;
    (void)err;
    struct resilver_job *r = xcalloc(1, sizeof *r);
    r->target = host;
    r->tally = job_tally_new("moved");
    job_stop_init(&r->stop);
    *self = r;
    return 0;
}

static int job_run(void *self, struct error *err)
{
    struct resilver_job *r = self;
    return resilver_run(r->target->store, &r->stop, r->tally, err);
}

static void job_stop(void *self)
{
    struct resilver_job *r = self;
    job_stop_now(&r->stop);
}

static json_t *job_status(void *self)
{
    const struct resilver_job *r = self;
    return job_tally_status(r->tally);
}

static void job_free(void *self)
{
    struct resilver_job *r = self;
    job_tally_free(r->tally);
    job_stop_done(&r->stop);
    free(r);
}

const struct xaction_ops resilver_xaction = {
    .kind = "resilver",
    .open = job_open,
    .prepare = xaction_nothing,
    .run = job_run,
    .stop = job_stop,
    .commit = xaction_nothing,
    .undo = xaction_nothing,
    .status = job_status,
    .free = job_free,
};
