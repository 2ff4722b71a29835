/* The job `resilver` on a target: resilver.h in a job's thread.  A job that is begun again finds
 * most of it done. */
#include "target/jobs/job_base.h"
#include "target/scrub/resilver.h"

static int run(void *self, struct error *err)
{
    struct job_base *j = self;
    return resilver_run(j->target->store, &j->stop, j->tally, err);
}

const struct xaction_ops resilver_xaction =
    JOB_WORK("resilver", .size = sizeof(struct job_base), .done_word = "moved", .run = run);
