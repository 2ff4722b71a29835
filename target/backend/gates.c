#include "target/backend/gates.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "common/origin.h"
#include "target/backend/limit.h"

enum { GATES_MAX = 256 };

struct gate {
    struct gate *next;
    char *origin;
    struct limit limit;
    unsigned running;
};

struct gates {
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    bool closed;
    struct gate *first;
    unsigned count;
    metric_t *waiting;
};

struct gates *gates_new(void)
{
    struct gates *g = xcalloc(1, sizeof *g);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->changed, NULL);
    g->waiting = metric_get(M_backend_waiting, NULL);
    return g;
}

void gates_close(struct gates *g)
{
    pthread_mutex_lock(&g->lock);
    g->closed = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

void gates_free(struct gates *g)
{
    if (g == NULL)
        return;
    for (struct gate *at = g->first, *next; at != NULL; at = next) {
        next = at->next;
        free(at->origin);
        free(at);
    }
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->changed);
    free(g);
}

static struct gate *find_gate(struct gates *g, const char *url)
{
    _cleanup_free_ char *origin = origin_normal(url);
    for (struct gate *at = g->first; at != NULL; at = at->next) {
        if (strcmp(at->origin, origin) == 0)
            return at;
    }
    if (g->count == GATES_MAX)
        return NULL;
    struct gate *fresh = xcalloc(1, sizeof *fresh);
    *fresh = (struct gate){.next = g->first, .origin = steal(origin)};
    limit_init(&fresh->limit);
    g->first = fresh;
    g->count++;
    return fresh;
}

bool gate_enter(struct gates *g, const char *url, struct gate_pass *out)
{
    pthread_mutex_lock(&g->lock);
    struct gate *gate = find_gate(g, url);
    metric_gauge_add(g->waiting, 1);
    while (!g->closed && gate != NULL && gate->running >= limit_now(&gate->limit))
        pthread_cond_wait(&g->changed, &g->lock);
    metric_gauge_add(g->waiting, -1);
    bool enters = !g->closed;
    if (enters && gate != NULL) {
        gate->running++;
        *out = (struct gate_pass){.gate = gate, .cuts = gate->limit.cuts};
    } else {
        *out = (struct gate_pass){.gate = NULL};
    }
    pthread_mutex_unlock(&g->lock);
    return enters;
}

void gate_leave(struct gates *g, const struct gate_pass *pass, enum gate_verdict verdict)
{
    struct gate *gate = pass->gate;
    if (gate == NULL)
        return;
    pthread_mutex_lock(&g->lock);
    if (verdict == GATE_ANSWERED)
        limit_answered(&gate->limit);
    else if (verdict == GATE_REFUSED)
        limit_refused(&gate->limit, pass->cuts, gate->running);
    gate->running--;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}
