#include "target/copies/ask_peers.h"

#include <pthread.h>
#include <stdlib.h>

#include "cluster/placement/owners.h"
#include "common/clock.h"
#include "common/condition.h"
#include "common/mem.h"
#include "target/copies/held.h"
#include "target/store/object.h"
#include "target/node/target.h"

struct question {
    struct hearing *hearing;
    const char *node; /* the state's */
    char *url;
    struct object_held held;
    bool over;
    struct error err;
};

/* Lives until the last answer has come. */
struct hearing {
    const struct cluster_state *state;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    size_t refs; /* who asks, and one for each question */
    size_t pending;
    size_t count;
    struct question questions[];
};

static struct hearing *hearing_new(const struct ask_peers_spec *spec)
{
    struct hearing *h = xcalloc(1, sizeof *h + spec->count * sizeof h->questions[0]);
    condition_init(&h->changed);
    pthread_mutex_init(&h->lock, NULL);
    h->state = state_ref(spec->state);
    h->refs = spec->count + 1;
    h->pending = h->count = spec->count;
    return h;
}

/* Gives the lock back. */
static void hearing_drop(struct hearing *h)
{
    bool last = --h->refs == 0;
    pthread_mutex_unlock(&h->lock);
    if (!last)
        return;
    for (size_t i = 0; i < h->count; i++)
        free(h->questions[i].url);
    pthread_cond_destroy(&h->changed);
    pthread_mutex_destroy(&h->lock);
    state_unref(h->state);
    free(h);
}

static void answered(void *arg, struct http_result *r)
{
    struct question *q = arg;
    struct hearing *h = q->hearing;
    pthread_mutex_lock(&h->lock);
    held_of(r, q->url, q->node, &q->held, &q->err);
    q->over = true;
    h->pending--;
    pthread_cond_broadcast(&h->changed);
    hearing_drop(h);
}

static void ask(struct hearing *h, const struct ask_peers_spec *spec)
{
    for (size_t i = 0; i < h->count; i++) {
        struct question *q = &h->questions[i];
        q->hearing = h;
        q->node = spec->nodes[i]->id;
        q->url =
            held_url(spec->state, spec->nodes[i], spec->bucket_id, spec->name, spec->these_owners);
        const struct http_call call = {.method = HTTP_GET,
                                       .url = q->url,
                                       .node = q->node,
                                       .total_timeout_ms = spec->target->params.call_timeout};
        http_call_start(spec->target->data_client, &call, answered, q);
    }
}

static bool is_heard(const struct question *q)
{
    return q->over && q->err.code == 0;
}

/* Under the lock. */
static bool is_enough(const struct hearing *h, const struct ask_peers_spec *spec)
{
    bool knows[OWNERS_ASKED_MAX];
    if (spec->enough == NULL)
        return false;
    for (size_t i = 0; i < h->count; i++)
        knows[i] = is_heard(&h->questions[i]) && !h->questions[i].held.unreadable;
    return spec->enough(spec->ctx, knows);
}

/* Under the lock. */
static void await(struct hearing *h, const struct ask_peers_spec *spec)
{
    while (h->pending > 0 && !is_enough(h, spec))
        pthread_cond_wait(&h->changed, &h->lock);
    const struct timespec end = clock_after(spec->grace_ms);
    while (h->pending > 0 && pthread_cond_timedwait(&h->changed, &h->lock, &end) == 0)
        ;
}

static const struct question *find_failed(const struct hearing *h, bool stale)
{
    for (size_t i = 0; i < h->count; i++) {
        const struct question *q = &h->questions[i];
        if (q->over && q->err.code != 0 && (!stale || q->err.code == E_STALE_MAP))
            return q;
    }
    return NULL;
}

static const struct question *find_silent(const struct hearing *h)
{
    for (size_t i = 0; i < h->count; i++) {
        if (!h->questions[i].over)
            return &h->questions[i];
    }
    return NULL;
}

/* That the map is an old one says more than that somebody is silent. */
static int failure_of(const struct hearing *h, struct error *err)
{
    const struct question *stale = find_failed(h, true);
    const struct question *silent = find_silent(h);
    if (stale == NULL && silent != NULL)
        return error_set(err, E_NODE_UNREACHABLE, "target '%s' has not answered yet", silent->node);
    const struct question *worst = stale != NULL ? stale : find_failed(h, false);
    return worst != NULL ? error_set(err, worst->err.code, "%s", worst->err.message) : 0;
}

int ask_peers(const struct ask_peers_spec *spec, struct object_held *held, bool *heard,
              struct error *err)
{
    struct hearing *h = hearing_new(spec);
    ask(h, spec);
    pthread_mutex_lock(&h->lock);
    await(h, spec);
    for (size_t i = 0; i < h->count; i++) {
        heard[i] = is_heard(&h->questions[i]);
        held[i] = heard[i] ? h->questions[i].held : (struct object_held){.found = false};
    }
    int code = failure_of(h, err);
    hearing_drop(h);
    return code;
}
