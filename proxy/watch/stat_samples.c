#include "proxy/watch/stat_samples.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"

enum { ID_MAX = 64 };

/* Of the interval `slot`; 0: none.  Intervals are counted from 1. */
struct sample {
    uint64_t slot;
    struct node_stats stats;
};

struct of_node {
    struct of_node *next;
    char id[ID_MAX], boot[ID_MAX];
    uint64_t slot;           /* of the last keepalive … */
    struct node_stats base;  /* … and what the first one in that interval said */
    struct sample samples[]; /* that of a slot is at slot % ring */
};

struct stat_samples {
    struct stat_samples_config config;
    size_t
        ring; /* samples of a node: one more than is shown, which may be of an interval too new */
    pthread_mutex_t lock; /* of what follows */
    struct of_node *nodes;
};

struct stat_samples *stat_samples_new(const struct stat_samples_config *config)
{
    struct stat_samples *r = xcalloc(1, sizeof *r);
    r->config = *config;
    if (r->config.keep == 0)
        r->config.keep = 1;
    r->ring = r->config.keep + 1;
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

void stat_samples_free(struct stat_samples *r)
{
    if (r == NULL)
        return;
    for (struct of_node *n; (n = r->nodes) != NULL;) {
        r->nodes = n->next;
        free(n);
    }
    pthread_mutex_destroy(&r->lock);
    free(r);
}

/* --- keepalives ------------------------------------------------------------------------------ */

static void forget_silent(struct stat_samples *r, uint64_t slot)
{
    for (struct of_node **at = &r->nodes; *at != NULL;) {
        struct of_node *n = *at;
        if (n->slot + r->config.keep >= slot) {
            at = &n->next;
            continue;
        }
        *at = n->next;
        free(n);
    }
}

static struct of_node *node_of(struct stat_samples *r, const char *id)
{
    for (struct of_node *n = r->nodes; n != NULL; n = n->next) {
        if (strcmp(n->id, id) == 0)
            return n;
    }
    struct of_node *n = xcalloc(1, sizeof *n + r->ring * sizeof n->samples[0]);
    snprintf(n->id, sizeof n->id, "%s", id);
    n->next = r->nodes;
    r->nodes = n;
    return n;
}

static struct node_stats difference(const struct node_stats *a, const struct node_stats *b)
{
    struct node_stats out;
    for (size_t i = 0; i < NODE_STATS; i++) {
        uint64_t from = node_stat_rows[i].how == STAT_COUNT ? a->values[i] : 0;
        out.values[i] = b->values[i] > from ? b->values[i] - from : 0;
    }
    return out;
}

void stat_samples_hear(struct stat_samples *r, const char *id, const char *boot,
                       const struct node_stats *stats, uint64_t now_ms)
{
    uint64_t slot = now_ms / r->config.interval_ms + 1;
    pthread_mutex_lock(&r->lock);
    forget_silent(r, slot);
    struct of_node *n = node_of(r, id);
    bool same = strcmp(n->boot, boot) == 0;
    if (same && n->slot + 1 == slot)
        n->samples[n->slot % r->ring] =
            (struct sample){.slot = n->slot, .stats = difference(&n->base, stats)};
    if (!same || n->slot != slot)
        n->base = *stats;
    snprintf(n->boot, sizeof n->boot, "%s", boot);
    n->slot = slot;
    pthread_mutex_unlock(&r->lock);
}

/* --- showing --------------------------------------------------------------------------------- */

struct shown {
    uint64_t first, last; /* slots */
    size_t ring;
};

static const struct node_stats *sample_at(const struct of_node *n, uint64_t slot, size_t ring)
{
    const struct sample *s = &n->samples[slot % ring];
    return s->slot == slot ? &s->stats : NULL;
}

static json_t *node_json(const struct of_node *n, const struct shown *w)
{
    json_t *doc = json_object();
    for (size_t i = 0; i < NODE_STATS; i++) {
        json_t *list = json_array();
        for (uint64_t slot = w->first; slot <= w->last; slot++) {
            const struct node_stats *s = sample_at(n, slot, w->ring);
            json_array_append_new(list,
                                  s != NULL ? json_integer((json_int_t)s->values[i]) : json_null());
        }
        json_object_set_new(doc, node_stat_rows[i].name, list);
    }
    return doc;
}

/* Of all targets that have a sample there. */
static json_t *cluster_value(const struct stat_samples *r, size_t i, uint64_t slot)
{
    uint64_t value = 0;
    bool known = false;
    for (const struct of_node *n = r->nodes; n != NULL; n = n->next) {
        const struct node_stats *s = sample_at(n, slot, r->ring);
        if (s == NULL)
            continue;
        known = true;
        if (node_stat_rows[i].how != STAT_PEAK)
            value += s->values[i];
        else if (s->values[i] > value)
            value = s->values[i];
    }
    return known ? json_integer((json_int_t)value) : json_null();
}

static json_t *cluster_json(const struct stat_samples *r, const struct shown *w)
{
    json_t *doc = json_object();
    for (size_t i = 0; i < NODE_STATS; i++) {
        json_t *list = json_array();
        for (uint64_t slot = w->first; slot <= w->last; slot++)
            json_array_append_new(list, cluster_value(r, i, slot));
        json_object_set_new(doc, node_stat_rows[i].name, list);
    }
    return doc;
}

/* The last ones that are over for all. */
static struct shown shown_of(const struct stat_samples *r, size_t samples, uint64_t now_ms)
{
    const struct stat_samples_config *c = &r->config;
    uint64_t now = now_ms > c->late_ms ? (now_ms - c->late_ms) / c->interval_ms + 1 : 1;
    uint64_t last = now - 1; /* 0: none is over yet */
    uint64_t most = samples < c->keep ? samples : c->keep;
    return (struct shown){
        .first = last > most ? last - most + 1 : 1, .last = last, .ring = r->ring};
}

json_t *stat_samples_show(struct stat_samples *r, const struct stat_samples_question *q,
                          uint64_t now_ms)
{
    const struct shown w = shown_of(r, q->samples, now_ms);
    uint64_t ago_ms = now_ms - w.last * r->config.interval_ms;
    pthread_mutex_lock(&r->lock);
    json_t *doc =
        json_pack("{s:I, s:I, s:I, s:o}", "interval_ms", (json_int_t)r->config.interval_ms,
                  "end_ms", (json_int_t)(q->wall_ms - (int64_t)ago_ms), "samples",
                  (json_int_t)(w.last + 1 - w.first), "cluster", cluster_json(r, &w));
    if (q->nodes) {
        json_t *nodes = json_object();
        for (const struct of_node *n = r->nodes; n != NULL; n = n->next)
            json_object_set_new(nodes, n->id, node_json(n, &w));
        json_object_set_new(doc, "nodes", nodes);
    }
    pthread_mutex_unlock(&r->lock);
    return doc;
}
