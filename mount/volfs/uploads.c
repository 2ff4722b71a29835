#include "mount/volfs/uploads.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "common/mem.h"

struct uploads {
    struct volfs_store store;
    _Atomic uint64_t *bytes;
    pthread_t *threads;
    unsigned thread_count;
    pthread_mutex_t lock;      /* of all below, and of `busy` and `rc` of uploads */
    pthread_cond_t work, news; /* news: one has ended */
    struct upload *first, **last;
    unsigned on_way;
    bool ends;
};

static void run(struct uploads *u, struct upload *one)
{
    pthread_mutex_unlock(&u->lock);
    int rc = u->store.put(u->store.context, one->key, one->data, one->size);
    if (rc == 0) {
        free(one->data);
        one->data = NULL;
        atomic_fetch_sub(u->bytes, one->room);
    }
    pthread_mutex_lock(&u->lock);
    one->rc = rc;
    one->busy = false;
    u->on_way--;
    pthread_cond_broadcast(&u->news);
}

static void *uploader(void *arg)
{
    struct uploads *u = arg;
    pthread_mutex_lock(&u->lock);
    while (u->first != NULL || !u->ends) {
        struct upload *one = u->first;
        if (one == NULL) {
            pthread_cond_wait(&u->work, &u->lock);
            continue;
        }
        u->first = one->next;
        if (u->first == NULL)
            u->last = &u->first;
        run(u, one);
    }
    pthread_mutex_unlock(&u->lock);
    return NULL;
}

void uploads_put(struct uploads *u, struct upload *one)
{
    pthread_mutex_lock(&u->lock);
    while (u->on_way >= u->thread_count)
        pthread_cond_wait(&u->news, &u->lock);
    u->on_way++;
    one->next = NULL;
    one->busy = true;
    *u->last = one;
    u->last = &one->next;
    pthread_cond_signal(&u->work);
    pthread_mutex_unlock(&u->lock);
}

int uploads_wait(struct uploads *u, struct upload *one)
{
    pthread_mutex_lock(&u->lock);
    while (one->busy)
        pthread_cond_wait(&u->news, &u->lock);
    int rc = one->rc;
    pthread_mutex_unlock(&u->lock);
    return rc;
}

bool uploads_has_failed(struct uploads *u, struct upload *one)
{
    pthread_mutex_lock(&u->lock);
    bool failed = !one->busy && one->rc != 0;
    pthread_mutex_unlock(&u->lock);
    return failed;
}

struct uploads *uploads_new(const struct volfs_store *store, unsigned threads,
                            _Atomic uint64_t *bytes)
{
    struct uploads *u = xcalloc(1, sizeof *u);
    u->store = *store;
    u->bytes = bytes;
    u->last = &u->first;
    pthread_mutex_init(&u->lock, NULL);
    pthread_cond_init(&u->work, NULL);
    pthread_cond_init(&u->news, NULL);
    u->threads = xcalloc(threads, sizeof *u->threads);
    for (unsigned i = 0; i < threads; i++) {
        if (pthread_create(&u->threads[i], NULL, uploader, u) != 0)
            break;
        u->thread_count++;
    }
    if (u->thread_count > 0)
        return u;
    uploads_free(u);
    return NULL;
}

void uploads_free(struct uploads *u)
{
    if (u == NULL)
        return;
    pthread_mutex_lock(&u->lock);
    u->ends = true;
    pthread_cond_broadcast(&u->work);
    pthread_mutex_unlock(&u->lock);
    for (unsigned i = 0; i < u->thread_count; i++)
        pthread_join(u->threads[i], NULL);
    pthread_cond_destroy(&u->work);
    pthread_cond_destroy(&u->news);
    pthread_mutex_destroy(&u->lock);
    free(u->threads);
    free(u);
}
