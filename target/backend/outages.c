#include "target/backend/outages.h"

#include <pthread.h>
#include <string.h>

#include "common/error.h"
#include "common/mem.h"

struct outage {
    char *url; /* NULL: the place is free */
    unsigned failures;
};

struct outages {
    pthread_mutex_t lock; /* of all */
    size_t next;          /* the place that is taken next */
    struct outage each[OUTAGES_MAX];
};

struct outages *outages_new(void)
{
    struct outages *o = xcalloc(1, sizeof *o);
    pthread_mutex_init(&o->lock, NULL);
    return o;
}

void outages_free(struct outages *o)
{
    if (o == NULL)
        return;
    for (size_t i = 0; i < OUTAGES_MAX; i++)
        free(o->each[i].url);
    pthread_mutex_destroy(&o->lock);
    free(o);
}

static struct outage *find(struct outages *o, const char *url)
{
    for (size_t i = 0; i < OUTAGES_MAX; i++) {
        if (o->each[i].url != NULL && strcmp(o->each[i].url, url) == 0)
            return &o->each[i];
    }
    return NULL;
}

static void count(struct outages *o, const char *url)
{
    struct outage *x = find(o, url);
    if (x == NULL) {
        x = &o->each[o->next];
        o->next = (o->next + 1) % OUTAGES_MAX;
        free(x->url);
        *x = (struct outage){.url = xstrdup(url)};
    }
    x->failures++;
}

static void end(struct outages *o, const char *url)
{
    struct outage *x = find(o, url);
    if (x == NULL)
        return;
    free(x->url);
    *x = (struct outage){.url = NULL};
}

void outages_note(struct outages *o, const char *url, int code)
{
    bool failed = code == E_BACKEND || code == E_BACKEND_BUSY || code == E_BACKEND_TIMEOUT;
    bool answered = code == 0 || code == E_OBJECT_NOT_FOUND || code == E_BACKEND_DENIED ||
                    code == E_RANGE || code == E_PRECONDITION;
    if (o == NULL || (!failed && !answered))
        return;
    pthread_mutex_lock(&o->lock);
    if (failed)
        count(o, url);
    else
        end(o, url);
    pthread_mutex_unlock(&o->lock);
}

bool outages_has(struct outages *o, const char *url)
{
    pthread_mutex_lock(&o->lock);
    const struct outage *x = find(o, url);
    bool fails = x != NULL && x->failures >= OUTAGE_FAILURES;
    pthread_mutex_unlock(&o->lock);
    return fails;
}
