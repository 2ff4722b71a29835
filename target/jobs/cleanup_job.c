/* The job `cleanup` on a target: everything at once that the sweeper (sweep.h) does in its time.
 * (What jobs have left that the cluster no longer knows goes with every new state, and so also with
 * the one that brings this job: job_files.h.) */
#include "target/jobs/job_base.h"
#include "target/store/sweep.h"

static int run(void *self, struct error *err)
{
    struct job_base *j = self;
    struct sweep_count n = {0};
    int code = sweeper_clean(j->target->sweeper, &j->stop.wanted, &n, err);
    job_tally_add(j->tally, n.tombstones + n.buckets + n.files, 0);
    job_tally_detail(j->tally, "removed",
                     json_pack("{s:I, s:I, s:I}", "tombstones", (json_int_t)n.tombstones, "buckets",
                               (json_int_t)n.buckets, "files", (json_int_t)n.files));
    return code != 0 ? code : job_tally_end(j->tally, err);
}

const struct xaction_ops cleanup_xaction =
    JOB_WORK("cleanup", .size = sizeof(struct job_base), .done_word = "removed", .run = run);
