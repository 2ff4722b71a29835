#include "api/ctl/workers.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/mem.h"

#define QUEUE_ITEMS 256

struct workers {
    void (*run)(void *context, void *item);
    void *context;
    pthread_t *threads;
    unsigned count;
    pthread_mutex_t lock; /* everything below */
    pthread_cond_t not_full;
    pthread_cond_t not_empty;
    void *queue[QUEUE_ITEMS]; /* a ring */
    size_t first;
    size_t waiting;
    bool ended;
};

static bool take(struct workers *w, void **item)
{
    pthread_mutex_lock(&w->lock);
    while (w->waiting == 0 && !w->ended)
        pthread_cond_wait(&w->not_empty, &w->lock);
    bool any = w->waiting > 0;
    if (any) {
        *item = w->queue[w->first];
        w->first = (w->first + 1) % QUEUE_ITEMS;
        w->waiting--;
        pthread_cond_signal(&w->not_full);
    }
    pthread_mutex_unlock(&w->lock);
    return any;
}

static void *work(void *arg)
{
    struct workers *w = arg;
    void *item;
    while (take(w, &item))
        w->run(w->context, item);
    return NULL;
}

struct workers *workers_start(unsigned threads, void (*run)(void *context, void *item),
                              void *context)
{
    struct workers *w = xcalloc(1, sizeof *w);
    w->run = run;
    w->context = context;
    w->threads = xcalloc(threads, sizeof *w->threads);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->not_full, NULL);
    pthread_cond_init(&w->not_empty, NULL);
    while (w->count < threads && pthread_create(&w->threads[w->count], NULL, work, w) == 0)
        w->count++;
    return w;
}

void workers_give(struct workers *w, void *item)
{
    if (w->count == 0) { /* the system gave no thread at all: do it here */
        w->run(w->context, item);
        return;
    }
    pthread_mutex_lock(&w->lock);
    while (w->waiting == QUEUE_ITEMS)
        pthread_cond_wait(&w->not_full, &w->lock);
    w->queue[(w->first + w->waiting) % QUEUE_ITEMS] = item;
    w->waiting++;
    pthread_cond_signal(&w->not_empty);
    pthread_mutex_unlock(&w->lock);
}

void workers_finish(struct workers *w)
{
    pthread_mutex_lock(&w->lock);
    w->ended = true;
    pthread_cond_broadcast(&w->not_empty);
    pthread_mutex_unlock(&w->lock);
    for (unsigned i = 0; i < w->count; i++)
        pthread_join(w->threads[i], NULL);
    pthread_cond_destroy(&w->not_empty);
    pthread_cond_destroy(&w->not_full);
    pthread_mutex_destroy(&w->lock);
    free(w->threads);
    free(w);
}
