#include "target/ring/waits.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/mem.h"

struct ring_waits {
    pthread_mutex_t
        lock; /* of what follows; before a ring's `keep`, and before `lock`, which is tried */
    uint64_t max, count;
    bool stop;
    struct ring_wait *first;
};

struct ring_waits *ring_waits_new(uint64_t max)
{
    struct ring_waits *w = xcalloc(1, sizeof *w);
    w->max = max;
    pthread_mutex_init(&w->lock, NULL);
    return w;
}

void ring_waits_free(struct ring_waits *w)
{
    if (w == NULL)
        return;
    pthread_mutex_destroy(&w->lock);
    free(w);
}

int ring_waits_add(struct ring_waits *w, struct ring_wait *wait, struct error *err)
{
    int code = 0;
    pthread_mutex_lock(&w->lock);
    if (w->stop) {
        code = error_set(err, E_NOT_READY, "the target ends; ask again");
    } else if (w->count >= w->max) {
        code = error_set(err, E_OVERLOAD,
                         "%llu calls of rings wait on this target (ring_waits_max); try again, "
                         "or ask without 'wait'",
                         (unsigned long long)w->count);
    } else {
        wait->next = w->first;
        w->first = wait;
        w->count++;
    }
    pthread_mutex_unlock(&w->lock);
    return code;
}

struct ring_wait *ring_waits_take(struct ring_waits *w, uint64_t now_ms)
{
    pthread_mutex_lock(&w->lock);
    struct ring_wait **at = &w->first;
    while (*at != NULL && !w->stop && now_ms < (*at)->until_ms && !(*at)->is_due(*at))
        at = &(*at)->next;
    struct ring_wait *found = *at;
    if (found != NULL) {
        *at = found->next;
        w->count--;
    }
    pthread_mutex_unlock(&w->lock);
    return found;
}

uint64_t ring_waits_next_ms(struct ring_waits *w, uint64_t latest_ms)
{
    pthread_mutex_lock(&w->lock);
    for (const struct ring_wait *wait = w->first; wait != NULL; wait = wait->next) {
        if (wait->until_ms < latest_ms)
            latest_ms = wait->until_ms;
    }
    pthread_mutex_unlock(&w->lock);
    return latest_ms;
}

void ring_waits_stop(struct ring_waits *w)
{
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_mutex_unlock(&w->lock);
}
