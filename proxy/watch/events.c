#include "proxy/watch/events.h"

#include <pthread.h>
#include <stdlib.h>

#include "cluster/documents/state.h"
#include "common/clock.h"
#include "common/mem.h"
#include "io/loop.h"
#include "proxy/watch/node_events.h"
#include "proxy/watch/state_events.h"

enum { LOOK_MS = 100 };

struct wait {
    struct wait *next;
    uint64_t after, until_ms;
    void (*fn)(void *arg);
    void *arg;
};

struct events {
    struct event_log *log;
    const struct cluster_state *seen; /* the control loop's */
    struct loop_timer *timer;         /* … and this */
    bool (*over)(void *ctx);
    void *ctx;
    size_t waits_max;
    pthread_mutex_t lock; /* of what follows */
    bool takes;           /* calls may wait */
    size_t count;
    struct wait *waits;
};

struct events *events_new(const struct events_config *config)
{
    struct events *e = xcalloc(1, sizeof *e);
    e->log = event_log_new(config->run, config->keep);
    e->waits_max = config->waits_max;
    pthread_mutex_init(&e->lock, NULL);
    return e;
}

void events_free(struct events *e)
{
    if (e == NULL)
        return;
    if (e->seen != NULL)
        state_unref(e->seen);
    event_log_free(e->log);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

struct event_log *events_log(struct events *e)
{
    return e->log;
}

void events_begin(struct events *e, const struct cluster_state *s)
{
    e->seen = state_ref(s);
}

void events_state(struct events *e, const struct cluster_state *s)
{
    const struct cluster_state *before = e->seen;
    if (before == s)
        return;
    if (before != NULL)
        state_events(before, s, clock_wall_ms(), e->log);
    e->seen = state_ref(s);
    if (before != NULL)
        state_unref(before);
}

void events_keepalive(struct events *e, const char *id, const struct keepalive *before,
                      const struct keepalive *now)
{
    node_events(id, before, now, clock_wall_ms(), e->log);
}

/* --- calls that wait ------------------------------------------------------------------------- */

/* Those that have waited long enough, out of the list. */
static struct wait *take_due(struct events *e, bool all)
{
    uint64_t now_ms = clock_ms(), last = event_log_last(e->log);
    struct wait *due = NULL;
    pthread_mutex_lock(&e->lock);
    for (struct wait **at = &e->waits; *at != NULL;) {
        struct wait *w = *at;
        if (!all && w->after >= last && now_ms < w->until_ms) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        w->next = due;
        due = w;
        e->count--;
    }
    pthread_mutex_unlock(&e->lock);
    return due;
}

static void answer(struct wait *due)
{
    for (struct wait *w; (w = due) != NULL;) {
        due = w->next;
        w->fn(w->arg);
        free(w);
    }
}

static void look(void *arg)
{
    struct events *e = arg;
    answer(take_due(e, e->over(e->ctx)));
}

static void set_takes(struct events *e, bool takes)
{
    pthread_mutex_lock(&e->lock);
    e->takes = takes;
    pthread_mutex_unlock(&e->lock);
}

struct start {
    struct events *e;
    struct loop *loop;
};

static void make_timer(void *arg)
{
    const struct start *s = arg;
    s->e->timer = loop_timer_new(s->loop, look, s->e);
    loop_timer_start(s->e->timer, LOOK_MS, LOOK_MS);
    set_takes(s->e, true);
}

void events_start(struct events *e, struct loop *loop, bool (*over)(void *ctx), void *ctx)
{
    struct start s = {.e = e, .loop = loop};
    e->over = over;
    e->ctx = ctx;
    loop_call(loop, make_timer, &s);
}

void events_stop(struct events *e)
{
    set_takes(e, false);
    answer(take_due(e, true));
    loop_timer_free(e->timer);
    e->timer = NULL;
}

bool events_wait(struct events *e, uint64_t after, uint64_t wait_ms, void (*fn)(void *arg),
                 void *arg)
{
    uint64_t until_ms = clock_ms() + wait_ms;
    pthread_mutex_lock(&e->lock);
    bool takes = e->takes && e->count < e->waits_max;
    if (takes) {
        struct wait *w = xcalloc(1, sizeof *w);
        *w = (struct wait){
            .next = e->waits, .after = after, .until_ms = until_ms, .fn = fn, .arg = arg};
        e->waits = w;
        e->count++;
    }
    pthread_mutex_unlock(&e->lock);
    return takes;
}
