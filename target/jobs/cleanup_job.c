#include "target/jobs/cleanup_job.h"

#include "target/jobs/once_job.h"
#include "target/store/sweep.h"
#include "target/node/target.h"

static int clean(struct target *t, const atomic_bool *stop, void *count, struct error *err)
{
    return sweeper_clean(t->sweeper, stop, count, err);
}

/* What is gone is gone, and was to go. */
static json_t *show(const void *count)
{
    const struct sweep_count *n = count;
    json_int_t all = (json_int_t)(n->tombstones + n->buckets + n->files);
    return json_pack("{s:{s:I, s:I}, s:{s:I, s:I, s:I}}", "objects", "done", all, "total", all,
                     "removed", "tombstones", (json_int_t)n->tombstones, "buckets",
                     (json_int_t)n->buckets, "files", (json_int_t)n->files);
}

static const struct once_job_work work = {
    .count_size = sizeof(struct sweep_count), .run = clean, .show = show};

static int job_open(void *host, const struct job *job, void **self, struct error *err)
{
    return once_job_open(host, job, &work, self, err);
}

const struct xaction_ops cleanup_xaction = ONCE_JOB_OPS("cleanup", job_open);
