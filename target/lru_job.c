#include "target/lru_job.h"

#include <pthread.h>

#include "common/clock.h"
#include "common/mem.h"
#include "target/evict.h"
#include "target/target.h"

struct lru_job {
    struct target *target;
    atomic_bool stop;
    pthread_mutex_t lock; /* of what follows */
    struct evict_count count;
    uint64_t begun_ms, ended_ms;
};

static int job_open(void *host, const struct job *job, void **self, struct error *err)
{
    (void)job;
    (void)err;
    struct lru_job *j = xcalloc(1, sizeof *j);
    j->target = host;
    pthread_mutex_init(&j->lock, NULL);
    *self = j;
    return 0;
}

static void job_free(void *self)
{
    struct lru_job *j = self;
    pthread_mutex_destroy(&j->lock);
    free(j);
}

static int job_run(void *self, struct error *err)
{
    struct lru_job *j = self;
    struct evict_count count = {0};
    uint64_t begun_ms = clock_ms();
    int code = evictor_run(j->target->evictor, &j->stop, &count, err);
    pthread_mutex_lock(&j->lock);
    j->count = count;
    j->begun_ms = begun_ms;
    j->ended_ms = clock_ms();
    pthread_mutex_unlock(&j->lock);
    return code;
}

static void job_stop(void *self)
{
    struct lru_job *j = self;
    atomic_store(&j->stop, true);
}

/* What is gone can be read again. */
static json_t *job_status(void *self)
{
    struct lru_job *j = self;
    pthread_mutex_lock(&j->lock);
    const struct evict_count n = j->count;
    double seconds = (double)(j->ended_ms - j->begun_ms) / 1000;
    bool ended = j->ended_ms != 0;
    pthread_mutex_unlock(&j->lock);
    return json_pack("{s:s, s:{s:I, s:I}, s:{s:I}, s:f}", "phase", ended ? "done" : "running",
                     "objects", "done", (json_int_t)n.objects, "total", (json_int_t)n.objects,
                     "bytes", "done", (json_int_t)n.bytes, "seconds", seconds);
}

const struct xaction_ops lru_xaction = {
    .kind = "lru",
    .open = job_open,
    .prepare = xaction_nothing,
    .run = job_run,
    .stop = job_stop,
    .commit = xaction_nothing,
    .undo = xaction_nothing,
    .status = job_status,
    .free = job_free,
};
