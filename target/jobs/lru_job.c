#include "target/jobs/lru_job.h"

#include "target/store/evict.h"
#include "target/jobs/once_job.h"
#include "target/node/target.h"

static int evict(struct target *t, const atomic_bool *stop, void *count, struct error *err)
{
    return evictor_run(t->evictor, stop, count, err);
}

/* What is gone can be read again. */
static json_t *show(const void *count)
{
    const struct evict_count *n = count;
    return json_pack("{s:{s:I, s:I}, s:{s:I}}", "objects", "done", (json_int_t)n->objects, "total",
                     (json_int_t)n->objects, "bytes", "done", (json_int_t)n->bytes);
}

static const struct once_job_work work = {
    .count_size = sizeof(struct evict_count), .run = evict, .show = show};

static int job_open(void *host, const struct job *job, void **self, struct error *err)
{
    return once_job_open(host, job, &work, self, err);
}

const struct xaction_ops lru_xaction = ONCE_JOB_OPS("lru", job_open);
