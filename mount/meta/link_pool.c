#include "mount/meta/link_pool.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "mount/meta/patience.h"

/* One server process, as seen from its connections. */
struct pooled {
    void *link;
    unsigned run; /* which of the runs that this pool has met */
};

struct link_pool {
    const struct link_pool_ops *ops;
    void *context;
    const char *lost_text;
    unsigned most;
    struct patience reads, commits; /* a server may answer the first, and refuse the second */

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t link_free;
    struct pooled *idle;
    unsigned idle_count, used_count;
    unsigned run;
    struct link_pool_run known;
    bool lost;
};

struct link_pool *link_pool_new(const struct link_pool_ops *ops, void *context, const char *lost,
                                unsigned most)
{
    struct link_pool *p = xcalloc(1, sizeof *p);
    p->ops = ops;
    p->context = context;
    p->lost_text = lost;
    p->most = most;
    p->reads.most_ms = p->commits.most_ms = ops->away_ms;
    p->idle = xcalloc(most, sizeof *p->idle);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->link_free, NULL);
    return p;
}

void link_pool_free(struct link_pool *p)
{
    if (p == NULL)
        return;
    for (unsigned i = 0; i < p->idle_count; i++)
        p->ops->close(p->idle[i].link);
    pthread_cond_destroy(&p->link_free);
    pthread_mutex_destroy(&p->lock);
    free(p->idle);
    free(p);
}

/* ---- hello ---- */

static int lost_commits(const struct link_pool *p, struct error *err)
{
    return error_set(err, E_CORRUPT, "%s", p->lost_text);
}

struct link_pool_run link_pool_known(struct link_pool *p)
{
    pthread_mutex_lock(&p->lock);
    const struct link_pool_run known = p->known;
    pthread_mutex_unlock(&p->lock);
    return known;
}

/* Is it the same run, a later one, or one that lost commits? */
int link_pool_met(struct link_pool *p, const struct link_pool_hello *hello, unsigned *run,
                  struct error *err)
{
    int rc = 0;
    pthread_mutex_lock(&p->lock);
    p->lost |= !hello->kept;
    if (p->lost) {
        pthread_cond_broadcast(&p->link_free); /* all that wait fail */
        rc = lost_commits(p, err);
    } else if (hello->refused != 0) {
        rc = hello->refused;
    } else if (strcmp(p->known.name, hello->run) != 0) {
        snprintf(p->known.name, sizeof p->known.name, "%s", hello->run);
        p->known.number = hello->number;
        p->run++;
    }
    *run = p->run;
    pthread_mutex_unlock(&p->lock);
    return rc;
}

/* ---- take and give ---- */

static int new_link(struct link_pool *p, bool first, struct pooled *out, struct error *err)
{
    int rc = p->ops->open(p->context, first, &out->link, &out->run, err);
    return rc == E_IN_DOUBT ? error_recode(err, E_NET, "hello") : rc;
}

static void *take_idle(struct link_pool *p)
{
    while (p->idle_count > 0) {
        const struct pooled *last = &p->idle[--p->idle_count];
        if (last->run == p->run && p->ops->is_idle(last->link))
            return last->link;
        p->ops->close(last->link);
    }
    return NULL;
}

/* usable: the server has replied. */
static void give(struct link_pool *p, const struct pooled *l, bool usable)
{
    if (usable)
        patience_back(&p->reads);
    pthread_mutex_lock(&p->lock);
    p->used_count--;
    if (usable && l->run == p->run)
        p->idle[p->idle_count++] = *l;
    else
        p->ops->close(l->link);
    pthread_cond_signal(&p->link_free);
    pthread_mutex_unlock(&p->lock);
}

static int take(struct link_pool *p, struct pooled *out, struct error *err)
{
    *out = (struct pooled){0};
    pthread_mutex_lock(&p->lock);
    while (p->used_count == p->most && !p->lost)
        pthread_cond_wait(&p->link_free, &p->lock);
    int rc = p->lost ? lost_commits(p, err) : 0;
    if (rc == 0) {
        p->used_count++;
        *out = (struct pooled){take_idle(p), p->run};
    }
    pthread_mutex_unlock(&p->lock);
    if (rc != 0 || out->link != NULL)
        return rc;
    rc = new_link(p, false, out, err);
    if (rc != 0)
        give(p, out, false);
    return rc;
}

int link_pool_open(struct link_pool *p, struct error *err)
{
    struct pooled l = {0};
    int rc = new_link(p, true, &l, err);
    if (rc != 0)
        return rc;
    p->used_count++; /* no other thread knows the pool yet */
    give(p, &l, true);
    return 0;
}

/* ---- calls ---- */

int link_pool_acknowledge(struct link_pool *p, unsigned run, int64_t number, struct error *err)
{
    int rc = 0;
    pthread_mutex_lock(&p->lock);
    if (run != p->run)
        rc = error_set(err, E_IN_DOUBT, "another %s server has taken over", p->ops->server);
    else if (p->known.number < number)
        p->known.number = number;
    pthread_mutex_unlock(&p->lock);
    return rc;
}

static int try_once(struct link_pool *p, link_pool_try *try, void *call, struct error *err)
{
    struct pooled l;
    bool usable = false;
    int rc = take(p, &l, err);
    if (rc != 0)
        return rc;
    rc = try(call, l.link, l.run, &usable, err);
    give(p, &l, usable);
    return rc;
}

int link_pool_call(struct link_pool *p, link_pool_try *try, void *call, bool again,
                   struct error *err)
{
    struct patience *patience = again ? &p->reads : &p->commits;
    for (struct patience_call waits = {0};;) {
        int rc = try_once(p, try, call, err);
        const bool away = rc == E_NET || rc == E_NOT_READY || (rc == E_IN_DOUBT && again);
        if (rc == 0 && err != NULL)
            *err = ERROR_INIT; /* of earlier tries */
        if (rc == 0 || rc == E_PRECONDITION)
            patience_back(patience);
        if (!away)
            return rc;
        if (!patience_wait(patience, &waits))
            return error_recode(err, E_NET, "no metadata for %u s", p->ops->away_ms / 1000);
    }
}
