#include "target/jobs/once_job.h"

#include <assert.h>
#include <pthread.h>
#include <stdalign.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"

struct once_job {
    struct target *target;
    const struct once_job_work *work;
    atomic_bool stop;
    pthread_mutex_t lock; /* of what follows, which is all zero until the end */
    alignas(max_align_t) unsigned char count[ONCE_JOB_COUNT_MAX];
    uint64_t begun_ms, ended_ms;
};

int once_job_open(void *host, const struct job *job, const struct once_job_work *work, void **self,
                  struct error *err)
{
    (void)job;
    (void)err;
    assert(work->count_size <= ONCE_JOB_COUNT_MAX);
    struct once_job *j = xcalloc(1, sizeof *j);
    j->target = host;
    j->work = work;
    pthread_mutex_init(&j->lock, NULL);
    *self = j;
    return 0;
}

void once_job_free(void *self)
{
    struct once_job *j = self;
    pthread_mutex_destroy(&j->lock);
    free(j);
}

int once_job_run(void *self, struct error *err)
{
    struct once_job *j = self;
    alignas(max_align_t) unsigned char count[ONCE_JOB_COUNT_MAX] = {0};
    uint64_t begun_ms = clock_ms();
    int code = j->work->run(j->target, &j->stop, count, err);
    pthread_mutex_lock(&j->lock);
    memcpy(j->count, count, sizeof count);
    j->begun_ms = begun_ms;
    j->ended_ms = clock_ms();
    pthread_mutex_unlock(&j->lock);
    return code;
}

void once_job_stop(void *self)
{
    struct once_job *j = self;
    atomic_store(&j->stop, true);
}

json_t *once_job_status(void *self)
{
    struct once_job *j = self;
    pthread_mutex_lock(&j->lock);
    json_t *doc = j->work->show(j->count);
    json_object_set_new(doc, "phase", json_string(j->ended_ms != 0 ? "done" : "running"));
    json_object_set_new(doc, "seconds", json_real((double)(j->ended_ms - j->begun_ms) / 1000));
    pthread_mutex_unlock(&j->lock);
    return doc;
}
