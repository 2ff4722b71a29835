#include "mount/meta/postgres_pool.h"

#include <endian.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "mount/meta/patience.h"

enum { RUN = 40 };

/* One server process, as seen from its connections. */
struct pooled {
    struct postgres_link *link;
    unsigned run; /* which of the runs that this pool has met */
};

struct postgres_pool {
    char *url;
    unsigned most, timeout_ms;
    struct patience patience;

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t link_free;
    struct pooled *idle;
    unsigned idle_count, used_count;
    unsigned run;
    char run_name[RUN]; /* of the server process that was met last; "" before */
    int64_t number;     /* of the last acknowledged transaction of this run */
    bool lost;
};

/* ---- hello ---- */

static int lost_commits(struct error *err)
{
    return error_set(err, E_CORRUPT,
                     "the PostgreSQL server has lost commits that it acknowledged (a restored "
                     "backup, or a failover): mount the volume again");
}

/* What the server said: is what was acknowledged still there? */
static int judge(struct postgres_pool *p, const PGresult *reply, unsigned *run, struct error *err)
{
    if (PQntuples(reply) != 1 || PQnfields(reply) != 4)
        return error_set(err, E_CORRUPT, "the PostgreSQL server's first reply");
    const int64_t format = postgres_number(reply, 0, 0);
    int rc = 0;
    pthread_mutex_lock(&p->lock);
    p->lost |= postgres_number(reply, 0, 3) == 0;
    if (p->lost) {
        rc = lost_commits(err);
    } else if (format != POSTGRES_FORMAT) {
        rc = error_set(err, E_UNSUPPORTED,
                       "the PostgreSQL database has format %lld, this release reads %d",
                       (long long)format, POSTGRES_FORMAT);
    } else if (strcmp(p->run_name, PQgetvalue(reply, 0, 1)) != 0) {
        snprintf(p->run_name, RUN, "%s", PQgetvalue(reply, 0, 1));
        p->number = postgres_number(reply, 0, 2);
        p->run++;
    }
    *run = p->run;
    pthread_mutex_unlock(&p->lock);
    return rc;
}

static int greet(struct postgres_pool *p, struct postgres_link *l, unsigned *run, struct error *err)
{
    char known[RUN];
    pthread_mutex_lock(&p->lock);
    memcpy(known, p->run_name, RUN);
    const uint64_t seen = htobe64((uint64_t)p->number);
    pthread_mutex_unlock(&p->lock);
    struct postgres_ask hello = {
        .statement = POSTGRES_HELLO,
        .params = {{known, strlen(known)}, {&seen, sizeof seen}},
        .count = 2,
    };
    int rc = postgres_link_run(l, &hello, 1, err);
    if (rc == 0)
        rc = judge(p, hello.result, run, err);
    postgres_asks_done(&hello, 1);
    return rc;
}

static int has_volume(struct postgres_link *l, bool *has, struct error *err)
{
    struct postgres_ask asks[] = {{.text = postgres_settings},
                                  {.text = "SELECT to_regclass('dfc_volume') IS NOT NULL"}};
    int rc = postgres_link_run(l, asks, 2, err);
    *has = rc == 0 && postgres_number(asks[1].result, 0, 0) != 0;
    postgres_asks_done(asks, 2);
    return rc;
}

static int new_link(struct postgres_pool *p, bool make, struct pooled *out, struct error *err)
{
    _cleanup_(postgres_link_closep)
    struct postgres_link *l = NULL;
    bool has = true;
    int rc = postgres_link_open(p->url, p->timeout_ms, &l, err);
    if (rc == 0 && make)
        rc = postgres_link_script(l, postgres_schema, err);
    if (rc == 0)
        rc = has_volume(l, &has, err);
    if (rc == 0 && !has)
        rc = error_set(err, E_NOT_FOUND, "the PostgreSQL database has no volume");
    if (rc == 0)
        rc = postgres_link_prepare(l, err);
    if (rc == 0)
        rc = greet(p, l, &out->run, err);
    if (rc == E_IN_DOUBT) /* no change of the caller's has been sent */
        return error_recode(err, E_NET, "hello");
    if (rc == 0)
        out->link = steal(l);
    return rc;
}

/* ---- take and give ---- */

static struct postgres_link *take_idle(struct postgres_pool *p)
{
    while (p->idle_count > 0) {
        const struct pooled *last = &p->idle[--p->idle_count];
        if (last->run == p->run && postgres_link_is_idle(last->link))
            return last->link;
        postgres_link_close(last->link);
    }
    return NULL;
}

/* usable: the server has replied. */
static void give(struct postgres_pool *p, const struct pooled *l, bool usable)
{
    if (usable)
        patience_back(&p->patience);
    pthread_mutex_lock(&p->lock);
    p->used_count--;
    if (usable && l->run == p->run)
        p->idle[p->idle_count++] = *l;
    else
        postgres_link_close(l->link);
    pthread_cond_signal(&p->link_free);
    pthread_mutex_unlock(&p->lock);
}

static int take(struct postgres_pool *p, struct pooled *out, struct error *err)
{
    *out = (struct pooled){0};
    pthread_mutex_lock(&p->lock);
    while (p->used_count == p->most)
        pthread_cond_wait(&p->link_free, &p->lock);
    int rc = p->lost ? lost_commits(err) : 0;
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

/* ---- calls ---- */

/* E_IN_DOUBT: a process replied that other connections have seen replaced. */
static int acknowledge(struct postgres_pool *p, const struct pooled *l,
                       const struct postgres_ask *asks, size_t count, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        if (asks[i].text != NULL || asks[i].statement != POSTGRES_NUMBER)
            continue;
        if (PQntuples(asks[i].result) != 1)
            return error_set(err, E_IN_DOUBT, "the row of dfc_volume is missing");
        const int64_t number = postgres_number(asks[i].result, 0, 0);
        pthread_mutex_lock(&p->lock);
        if (l->run != p->run)
            rc = error_set(err, E_IN_DOUBT, "another PostgreSQL server has taken over");
        else if (p->number < number)
            p->number = number;
        pthread_mutex_unlock(&p->lock);
    }
    return rc;
}

static int try_once(struct postgres_pool *p, struct postgres_ask *asks, size_t count,
                    struct error *err)
{
    struct pooled l;
    int rc = take(p, &l, err);
    if (rc != 0)
        return rc;
    rc = postgres_link_run(l.link, asks, count, err);
    if (rc == 0)
        rc = acknowledge(p, &l, asks, count, err);
    if (rc != 0) {
        postgres_asks_done(asks, count);
        for (size_t i = 0; i < count; i++)
            asks[i].result = NULL;
    }
    give(p, &l, rc == 0);
    return rc;
}

int postgres_pool_run(struct postgres_pool *p, struct postgres_ask *asks, size_t count, bool again,
                      struct error *err)
{
    for (unsigned failures = 1;; failures++) {
        int rc = try_once(p, asks, count, err);
        const bool away = rc == E_NET || rc == E_NOT_READY || (rc == E_IN_DOUBT && again);
        if (rc == 0 && err != NULL)
            *err = ERROR_INIT; /* of earlier tries */
        if (!away)
            return rc;
        if (!patience_wait(&p->patience, failures))
            return error_recode(err, E_NET, "no metadata for %d s", META_AWAY_MS / 1000);
    }
}

/* ---- open and close ---- */

int postgres_pool_open(const char *url, bool make, unsigned most, unsigned timeout_ms,
                       struct postgres_pool **out, struct error *err)
{
    struct pooled l = {0};
    struct postgres_pool *p = xcalloc(1, sizeof *p);
    p->url = xstrdup(url);
    p->most = most;
    p->timeout_ms = timeout_ms;
    p->idle = xcalloc(most, sizeof(struct pooled));
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->link_free, NULL);
    /* Does not wait for a server that is away: the URL may be wrong. */
    int rc = new_link(p, make, &l, err);
    if (rc != 0) {
        postgres_pool_close(p);
        return rc;
    }
    p->used_count++;
    give(p, &l, true);
    *out = p;
    return 0;
}

void postgres_pool_close(struct postgres_pool *p)
{
    if (p == NULL)
        return;
    for (unsigned i = 0; i < p->idle_count; i++)
        postgres_link_close(p->idle[i].link);
    pthread_cond_destroy(&p->link_free);
    pthread_mutex_destroy(&p->lock);
    free(p->idle);
    free(p->url);
    free(p);
}
