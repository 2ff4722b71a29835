#include "mount/write/parts.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/mem.h"

struct parts {
    struct write_store store;
    unsigned count;
    pthread_t *threads;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t work;
    struct part *first, **last;
    bool stop;
};

static struct part *parts_pop(struct parts *q)
{
    struct part *part = q->first;
    if (part == NULL)
        return NULL;
    q->first = part->next;
    if (q->first == NULL)
        q->last = &q->first;
    return part;
}

static void *sender(void *context)
{
    struct parts *q = context;
    pthread_mutex_lock(&q->lock);
    for (;;) {
        struct part *part = parts_pop(q);
        if (part == NULL && q->stop)
            break;
        if (part == NULL) {
            pthread_cond_wait(&q->work, &q->lock);
            continue;
        }
        pthread_mutex_unlock(&q->lock);
        part->done(part, q->store.part(q->store.context, part->key, part->upload, part->number,
                                       part->data, part->size, &part->tag));
        pthread_mutex_lock(&q->lock);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

struct parts *parts_new(const struct write_store *store, unsigned threads)
{
    struct parts *q = xcalloc(1, sizeof *q);
    q->store = *store;
    q->last = &q->first;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->work, NULL);
    q->threads = xcalloc(threads, sizeof *q->threads);
    while (q->count < threads && pthread_create(&q->threads[q->count], NULL, sender, q) == 0)
        q->count++;
    if (q->count > 0)
        return q;
    parts_free(q);
    return NULL;
}

void parts_push(struct parts *q, struct part *part)
{
    pthread_mutex_lock(&q->lock);
    part->next = NULL;
    *q->last = part;
    q->last = &part->next;
    pthread_cond_signal(&q->work);
    pthread_mutex_unlock(&q->lock);
}

void parts_free(struct parts *q)
{
    if (q == NULL)
        return;
    pthread_mutex_lock(&q->lock);
    q->stop = true;
    pthread_cond_broadcast(&q->work);
    pthread_mutex_unlock(&q->lock);
    for (unsigned i = 0; i < q->count; i++)
        pthread_join(q->threads[i], NULL);
    pthread_cond_destroy(&q->work);
    pthread_mutex_destroy(&q->lock);
    free(q->threads);
    free(q);
}
