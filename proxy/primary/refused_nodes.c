#include "proxy/primary/refused_nodes.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

struct refused_nodes {
    pthread_mutex_t lock;
    size_t count;
    struct stranger all[STRANGERS_MAX];
};

struct refused_nodes *refused_nodes_new(void)
{
    struct refused_nodes *s = xcalloc(1, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

void refused_nodes_free(struct refused_nodes *s)
{
    if (s == NULL)
        return;
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static struct stranger *place_for(struct refused_nodes *s, const char *id)
{
    struct stranger *oldest = &s->all[0];
    for (size_t i = 0; i < s->count; i++) {
        if (strcmp(s->all[i].id, id) == 0)
            return &s->all[i];
        if (s->all[i].heard_ms < oldest->heard_ms)
            oldest = &s->all[i];
    }
    return s->count < STRANGERS_MAX ? &s->all[s->count++] : oldest;
}

static bool fits(const char *text, size_t room)
{
    return strlen(text) < room;
}

void refused_nodes_note(struct refused_nodes *s, const char *id, const char *control_url,
                        const char *cluster, uint64_t term, uint64_t version, uint64_t now_ms)
{
    struct stranger one = {.term = term, .version = version, .heard_ms = now_ms};
    if (!fits(id, sizeof one.id) || !fits(cluster, sizeof one.cluster) ||
        !fits(control_url, sizeof one.control_url))
        return;
    snprintf(one.id, sizeof one.id, "%s", id);
    snprintf(one.cluster, sizeof one.cluster, "%s", cluster);
    snprintf(one.control_url, sizeof one.control_url, "%s", control_url);
    pthread_mutex_lock(&s->lock);
    *place_for(s, id) = one;
    pthread_mutex_unlock(&s->lock);
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct stranger *)a)->id, ((const struct stranger *)b)->id);
}

size_t refused_nodes_list(struct refused_nodes *s, uint64_t now_ms, uint64_t age_ms,
                          struct stranger **out)
{
    size_t count = 0;
    *out = xcalloc(STRANGERS_MAX, sizeof **out);
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->count; i++) {
        if (s->all[i].heard_ms + age_ms >= now_ms)
            (*out)[count++] = s->all[i];
    }
    pthread_mutex_unlock(&s->lock);
    qsort(*out, count, sizeof **out, by_id);
    return count;
}

void refused_nodes_forget(struct refused_nodes *s)
{
    pthread_mutex_lock(&s->lock);
    s->count = 0;
    pthread_mutex_unlock(&s->lock);
}
