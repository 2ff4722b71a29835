/* parallel_for(): the threads take the indices from one counter, so that a slow call does not hold
 * up the rest of a fixed share.  The calling thread is one of them. */
#include "io/pool.h"

#include <pthread.h>

#include "common/mem.h"
#include "io/thread.h"

struct parallel {
    int (*fn)(void *ctx, size_t i, struct error *err);
    void *ctx;
    pthread_mutex_t lock; /* guards what follows; not held during fn */
    size_t next;
    size_t n;
    struct error failure; /* of the lowest index; code 0: none */
    size_t failed;        /* that index */
};

static size_t parallel_take(struct parallel *p)
{
    pthread_mutex_lock(&p->lock);
    size_t i = p->failure.code == 0 && p->next < p->n ? p->next++ : p->n;
    pthread_mutex_unlock(&p->lock);
    return i;
}

/* All lower indices were taken before, and are brought to their end. */
static void parallel_fail(struct parallel *p, size_t i, int code, const struct error *err)
{
    pthread_mutex_lock(&p->lock);
    if (p->failure.code == 0 || i < p->failed) {
        p->failed = i;
        p->failure = *err;
        p->failure.code = code;
    }
    pthread_mutex_unlock(&p->lock);
}

static void *parallel_main(void *arg)
{
    struct parallel *p = arg;
    for (size_t i; (i = parallel_take(p)) < p->n;) {
        struct error err = ERROR_INIT;
        int rc = p->fn(p->ctx, i, &err);
        if (rc != 0)
            parallel_fail(p, i, rc, &err);
    }
    return NULL;
}

int parallel_for(const char *thread_name, unsigned width, size_t n,
                 int (*fn)(void *ctx, size_t i, struct error *err), void *ctx, struct error *err)
{
    struct parallel p = {.fn = fn, .ctx = ctx, .n = n};
    pthread_mutex_init(&p.lock, NULL);
    size_t wanted = n < width ? n : width;
    size_t helpers = 0;
    pthread_t *threads = xcalloc(wanted + 1, sizeof *threads);
    /* A thread that cannot be started costs speed, not the result. */
    while (helpers + 1 < wanted &&
           thread_start(thread_name, parallel_main, &p, &threads[helpers], NULL) == 0)
        helpers++;
    parallel_main(&p);
    for (size_t i = 0; i < helpers; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    pthread_mutex_destroy(&p.lock);
    if (p.failure.code != 0 && err != NULL)
        *err = p.failure;
    return p.failure.code;
}
