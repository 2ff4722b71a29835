#include "target/cleanup_job.h"

#include <pthread.h>

#include "common/clock.h"
#include "common/mem.h"
#include "target/sweep.h"
#include "target/target.h"

struct cleanup_job {
    struct target *target;
    atomic_bool stop;
    pthread_mutex_t lock; /* of what follows */
    struct sweep_count count;
    uint64_t begun_ms, ended_ms;
};

static int job_open(void *host, const struct job *job, void **self, struct error *err)
{
    (void)job;
    (void)err;
    struct cleanup_job *j = xcalloc(1, sizeof *j);
    j->target = host;
    pthread_mutex_init(&j->lock, NULL);
    *self = j;
    return 0;
}

static void job_free(void *self)
{
    struct cleanup_job *j = self;
    pthread_mutex_destroy(&j->lock);
    free(j);
}

static int job_run(void *self, struct error *err)
{
    struct cleanup_job *j = self;
    struct sweep_count count = {0};
    uint64_t begun_ms = clock_ms();
    int code = sweeper_clean(j->target->sweeper, &j->stop, &count, err);
    pthread_mutex_lock(&j->lock);
    j->count = count;
    j->begun_ms = begun_ms;
    j->ended_ms = clock_ms();
    pthread_mutex_unlock(&j->lock);
    return code;
}

static void job_stop(void *self)
{
    struct cleanup_job *j = self;
    atomic_store(&j->stop, true);
}

/* What is gone is gone, and was to go. */
static json_t *job_status(void *self)
{
    struct cleanup_job *j = self;
    pthread_mutex_lock(&j->lock);
    const struct sweep_count n = j->count;
    double seconds = (double)(j->ended_ms - j->begun_ms) / 1000;
    bool ended = j->ended_ms != 0;
    pthread_mutex_unlock(&j->lock);
    json_int_t all = (json_int_t)(n.tombstones + n.buckets + n.files);
    return json_pack("{s:s, s:{s:I, s:I}, s:{s:I, s:I, s:I}, s:f}", "phase",
                     ended ? "done" : "running", "objects", "done", all, "total", all, "removed",
                     "tombstones", (json_int_t)n.tombstones, "buckets", (json_int_t)n.buckets,
                     "files", (json_int_t)n.files, "seconds", seconds);
}

const struct xaction_ops cleanup_xaction = {
    .kind = "cleanup",
    .open = job_open,
    .prepare = xaction_nothing,
    .run = job_run,
    .stop = job_stop,
    .commit = xaction_nothing,
    .undo = xaction_nothing,
    .status = job_status,
    .free = job_free,
};
