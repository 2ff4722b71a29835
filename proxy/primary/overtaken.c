#include "proxy/primary/overtaken.h"

#include <pthread.h>
#include <string.h>

#include "common/mem.h"

struct overtaken {
    struct loop *loop;
    struct http_client *client;
    struct state_holder *state;
    uint64_t grace_ms;
    struct loop_timer *timer;
    bool armed;           /* the loop's */
    pthread_mutex_t lock; /* guards the ring */
    struct overtaken_wait ring;
};

static bool is_overtaken(const struct overtaken_wait *w, const struct cluster_state *s)
{
    return s->term > w->term && strcmp(s->primary, w->primary) != 0;
}

static void grace_is_over(void *arg)
{
    struct overtaken *o = arg;
    _cleanup_state_ const struct cluster_state *s = state_current(o->state);
    o->armed = false;
    pthread_mutex_lock(&o->lock);
    for (const struct overtaken_wait *w = o->ring.next; w != &o->ring; w = w->next) {
        if (is_overtaken(w, s))
            http_call_cancel(o->client, w->call);
    }
    pthread_mutex_unlock(&o->lock);
}

static bool any_is_overtaken(struct overtaken *o)
{
    _cleanup_state_ const struct cluster_state *s = state_current(o->state);
    pthread_mutex_lock(&o->lock);
    const struct overtaken_wait *w = o->ring.next;
    while (w != &o->ring && !is_overtaken(w, s))
        w = w->next;
    bool any = w != &o->ring;
    pthread_mutex_unlock(&o->lock);
    return any;
}

void overtaken_state_changed(struct overtaken *o)
{
    if (o->armed || !any_is_overtaken(o))
        return;
    o->armed = true;
    loop_timer_start(o->timer, o->grace_ms, 0);
}

static void look_again(void *arg)
{
    overtaken_state_changed(arg);
}

void overtaken_call(struct overtaken *o, struct overtaken_wait *w, const struct http_call *call,
                    void (*done)(void *arg, struct http_result *result), void *arg)
{
    uint64_t term = w->term;
    pthread_mutex_lock(&o->lock); /* so that done() does not remove what is not there yet */
    w->call = http_call_start(o->client, call, done, arg);
    w->prev = &o->ring;
    w->next = o->ring.next;
    w->next->prev = o->ring.next = w;
    pthread_mutex_unlock(&o->lock);
    _cleanup_state_ const struct cluster_state *s = state_current(o->state);
    if (s->term > term) /* the change was before it could be seen in the ring */
        loop_post(o->loop, look_again, o);
}

void overtaken_remove(struct overtaken *o, struct overtaken_wait *w)
{
    pthread_mutex_lock(&o->lock);
    w->prev->next = w->next;
    w->next->prev = w->prev;
    w->prev = w->next = NULL;
    pthread_mutex_unlock(&o->lock);
}

struct overtaken *overtaken_new(struct loop *loop, struct http_client *client,
                                struct state_holder *state, uint64_t grace_ms)
{
    struct overtaken *o = xcalloc(1, sizeof *o);
    *o = (struct overtaken){.loop = loop, .client = client, .state = state, .grace_ms = grace_ms};
    o->ring.prev = o->ring.next = &o->ring;
    pthread_mutex_init(&o->lock, NULL);
    o->timer = loop_timer_new(loop, grace_is_over, o);
    return o;
}

void overtaken_free(struct overtaken *o)
{
    if (o == NULL)
        return;
    loop_timer_free(o->timer);
    pthread_mutex_destroy(&o->lock);
    free(o);
}
