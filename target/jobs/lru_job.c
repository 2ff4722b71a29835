/* The job `lru` on a target: what the evictor (evict.h) does where a disk is too full, at once and
 * down to space_low from wherever it is. */
#include "target/jobs/job_base.h"
#include "target/store/evict.h"

static int run(void *self, struct error *err)
{
    struct job_base *j = self;
    struct evict_count n = {0};
    int code = evictor_run(j->target->evictor, &j->stop.wanted, &n, err);
    job_tally_add(j->tally, n.objects, n.bytes);
    return code != 0 ? code : job_tally_end(j->tally, err);
}

const struct xaction_ops lru_xaction =
    JOB_WORK("lru", .size = sizeof(struct job_base), .done_word = "evicted", .run = run);
