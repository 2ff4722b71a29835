#include "proxy/ais/summaries.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"

struct kept {
    char *key; /* NULL: the slot is free */
    char *token;
    struct bucket_sums sums;
};

struct summaries {
    pthread_mutex_t lock;
    size_t next; /* the slot that is filled next */
    struct kept kept[SUMMARIES_MAX];
};

static void kept_done(struct kept *k)
{
    free(k->key);
    free(k->token);
    *k = (struct kept){0};
}

struct summaries *summaries_new(void)
{
    struct summaries *s = xcalloc(1, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

void summaries_free(struct summaries *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < SUMMARIES_MAX; i++)
        kept_done(&s->kept[i]);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

bool summaries_take(struct summaries *s, const char *key, struct bucket_sums *sums, char **token)
{
    bool found = false;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < SUMMARIES_MAX && !found; i++) {
        struct kept *k = &s->kept[i];
        if (k->key == NULL || strcmp(k->key, key) != 0)
            continue;
        found = true;
        *sums = k->sums;
        *token = steal(k->token);
        kept_done(k);
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

void summaries_put(struct summaries *s, const char *key, const struct bucket_sums *sums,
                   const char *token)
{
    pthread_mutex_lock(&s->lock);
    struct kept *k = &s->kept[s->next];
    s->next = (s->next + 1) % SUMMARIES_MAX;
    kept_done(k);
    *k = (struct kept){.key = xstrdup(key), .token = xstrdup(token), .sums = *sums};
    pthread_mutex_unlock(&s->lock);
}
