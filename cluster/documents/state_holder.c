#include "cluster/documents/state_holder.h"

#include <pthread.h>

#include "cluster/documents/state.h"
#include "common/mem.h"

/* The lock covers a pointer and its count, never any work. */
struct state_holder {
    pthread_mutex_t lock;
    const struct cluster_state *current;
};

struct state_holder *state_holder_new(struct cluster_state *initial)
{
    struct state_holder *h = xcalloc(1, sizeof *h);
    pthread_mutex_init(&h->lock, NULL);
    h->current = initial;
    return h;
}

void state_holder_free(struct state_holder *h)
{
    if (h == NULL)
        return;
    state_unref(h->current);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

const struct cluster_state *state_current(struct state_holder *h)
{
    pthread_mutex_lock(&h->lock);
    const struct cluster_state *s = state_ref(h->current);
    pthread_mutex_unlock(&h->lock);
    return s;
}

bool state_advance(struct state_holder *h, const struct cluster_state *s)
{
    const struct cluster_state *old = NULL;
    pthread_mutex_lock(&h->lock);
    if (state_compare(s, h->current) > 0) {
        old = h->current;
        h->current = state_ref(s);
    }
    pthread_mutex_unlock(&h->lock);
    state_unref(old);
    return old != NULL;
}
