#include "io/shares.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "common/mem.h"
#include "io/pool.h"

struct work {
    struct work *next;
    struct share *share;
    void (*fn)(void *arg);
    void *arg;
};

/* Of one key; there while any of it runs. */
struct share {
    struct share *next;
    struct shares *shares;
    unsigned running; /* or in the pool's queue */
    struct work *first, **last;
    char key[];
};

struct shares {
    struct pool *pool;
    unsigned most;
    size_t waiting_max;
    pthread_mutex_t lock; /* of what follows */
    size_t waiting;
    struct share *all;
};

struct shares *shares_new(struct pool *pool, unsigned most, size_t waiting_max)
{
    assert(most > 0);
    struct shares *s = xcalloc(1, sizeof *s);
    *s = (struct shares){.pool = pool, .most = most, .waiting_max = waiting_max};
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

void shares_free(struct shares *s)
{
    if (s == NULL)
        return;
    assert(s->all == NULL);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* --- with the lock held ----------------------------------------------------------------------- */

static struct share *share_of(struct shares *s, const char *key)
{
    for (struct share *at = s->all; at != NULL; at = at->next) {
        if (strcmp(at->key, key) == 0)
            return at;
    }
    size_t len = strlen(key);
    struct share *fresh = xcalloc(1, sizeof *fresh + len + 1);
    fresh->shares = s;
    fresh->last = &fresh->first;
    fresh->next = s->all;
    memcpy(fresh->key, key, len + 1);
    s->all = fresh;
    return fresh;
}

static void leave(struct share *share)
{
    struct share **at = &share->shares->all;
    if (share->running > 0)
        return;
    assert(share->first == NULL);
    while (*at != share)
        at = &(*at)->next;
    *at = share->next;
    free(share);
}

static int enqueue(struct share *share, struct work *w, struct error *err)
{
    struct shares *s = share->shares;
    if (s->waiting == s->waiting_max)
        return error_set(err, E_OVERLOAD, "%zu requests wait for their turn, the limit",
                         s->waiting);
    *share->last = w;
    share->last = &w->next;
    s->waiting++;
    return 0;
}

static struct work *dequeue(struct share *share)
{
    struct work *w = share->first;
    if (w == NULL)
        return NULL;
    share->first = w->next;
    if (share->first == NULL)
        share->last = &share->first;
    share->shares->waiting--;
    return w;
}

/* --- in a thread of the pool ------------------------------------------------------------------ */

/* The next one of the key goes behind what others have in the pool; where that is full, it is run
 * here. */
static void run(void *arg)
{
    for (struct work *w = arg; w != NULL;) {
        struct share *share = w->share;
        struct shares *s = share->shares;
        w->fn(w->arg);
        free(w);
        pthread_mutex_lock(&s->lock);
        w = dequeue(share);
        if (w != NULL && pool_submit(s->pool, run, w, NULL) == 0)
            w = NULL;
        else if (w == NULL) {
            share->running--;
            leave(share);
        }
        pthread_mutex_unlock(&s->lock);
    }
}

int shares_submit(struct shares *s, const char *key, void (*fn)(void *arg), void *arg,
                  struct error *err)
{
    struct work *w = xcalloc(1, sizeof *w);
    pthread_mutex_lock(&s->lock);
    struct share *share = share_of(s, key);
    *w = (struct work){.share = share, .fn = fn, .arg = arg};
    int code;
    if (share->running >= s->most) {
        code = enqueue(share, w, err);
    } else {
        code = pool_submit(s->pool, run, w, err); /* it ends when the lock is free */
        share->running += code == 0;
        leave(share);
    }
    pthread_mutex_unlock(&s->lock);
    if (code != 0)
        free(w);
    return code;
}
