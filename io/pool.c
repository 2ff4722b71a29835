#include "io/pool.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

#include "common/mem.h"
#include "io/thread.h"

struct pool_job {
    void (*fn)(void *arg);
    void *arg;
};

struct pool {
    pthread_mutex_t lock; /* guards everything below; never held while a job runs */
    pthread_cond_t work;
    bool ending;
    size_t first; /* ring of jobs */
    size_t count;
    size_t max;
    struct pool_job *jobs;
    unsigned thread_count;
    pthread_t threads[];
};

/* The next job, or false when the pool ends and nothing is left. */
static bool pool_next(struct pool *p, struct pool_job *out)
{
    pthread_mutex_lock(&p->lock);
    while (p->count == 0 && !p->ending)
        pthread_cond_wait(&p->work, &p->lock);
    bool any = p->count > 0;
    if (any) {
        *out = p->jobs[p->first];
        p->first = (p->first + 1) % p->max;
        p->count--;
    }
    pthread_mutex_unlock(&p->lock);
    return any;
}

static void *pool_main(void *arg)
{
    struct pool *p = arg;
    struct pool_job job;
    while (pool_next(p, &job))
        job.fn(job.arg);
    return NULL;
}

int pool_new(const char *thread_name, unsigned threads, size_t queue_max, struct pool **out,
             struct error *err)
{
    assert(threads > 0 && queue_max > 0);
    struct pool *p = xcalloc(1, sizeof *p + threads * sizeof p->threads[0]);
    p->jobs = xcalloc(queue_max, sizeof p->jobs[0]);
    p->max = queue_max;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    for (; p->thread_count < threads; p->thread_count++) {
        int rc = thread_start(thread_name, pool_main, p, &p->threads[p->thread_count], err);
        if (rc != 0) {
            pool_free(p);
            return rc;
        }
    }
    *out = p;
    return 0;
}

int pool_submit(struct pool *p, void (*fn)(void *arg), void *arg, struct error *err)
{
    pthread_mutex_lock(&p->lock);
    bool full = p->count == p->max;
    if (!full) {
        p->jobs[(p->first + p->count) % p->max] = (struct pool_job){.fn = fn, .arg = arg};
        p->count++;
        pthread_cond_signal(&p->work);
    }
    pthread_mutex_unlock(&p->lock);
    if (full)
        return error_set(err, E_OVERLOAD, "the work queue is full (%zu)", p->max);
    return 0;
}

void pool_free(struct pool *p)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    p->ending = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->thread_count; i++)
        pthread_join(p->threads[i], NULL);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    free(p->jobs);
    free(p);
}
