#include "mount/meta/postgres_pool.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "mount/meta/link_pool.h"
#include "mount/meta/patience.h"

struct postgres_pool {
    char *url;
    bool make; /* by the first connection */
    unsigned timeout_ms;
    struct link_pool *pool;
};

/* ---- hello ---- */

static int check_format(int64_t format, struct error *err)
{
    return format == POSTGRES_FORMAT
               ? 0
               : error_set(err, E_UNSUPPORTED,
                           "the PostgreSQL database has format %lld, this release reads %d",
                           (long long)format, POSTGRES_FORMAT);
}

/* What the server said: is what was acknowledged still there? */
static int judge(struct postgres_pool *p, const PGresult *reply, unsigned *run, struct error *err)
{
    if (PQntuples(reply) != 1 || PQnfields(reply) != 4)
        return error_set(err, E_CORRUPT, "the PostgreSQL server's first reply");
    const struct link_pool_hello hello = {
        .kept = postgres_number(reply, 0, 3) != 0,
        .run = PQgetvalue(reply, 0, 1),
        .number = postgres_number(reply, 0, 2),
        .refused = check_format(postgres_number(reply, 0, 0), err),
    };
    return link_pool_met(p->pool, &hello, run, err);
}

static int greet(struct postgres_pool *p, struct postgres_link *l, unsigned *run, struct error *err)
{
    const struct link_pool_run known = link_pool_known(p->pool);
    const uint64_t seen = htobe64((uint64_t)known.number);
    struct postgres_ask hello = {
        .statement = POSTGRES_HELLO,
        .params = {{known.name, strlen(known.name)}, {&seen, sizeof seen}},
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
                                  {.text = postgres_new_settings},
                                  {.text = "SELECT to_regclass('dfc_volume') IS NOT NULL"}};
    int rc = postgres_link_run(l, asks, 3, err);
    *has = rc == 0 && postgres_number(asks[2].result, 0, 0) != 0;
    postgres_asks_done(asks, 3);
    return rc;
}

/* ---- a connection ---- */

static int open_link(void *context, bool first, void **link, unsigned *run, struct error *err)
{
    struct postgres_pool *p = context;
    _cleanup_(postgres_link_closep)
    struct postgres_link *l = NULL;
    bool has = true;
    int rc = postgres_link_open(p->url, p->timeout_ms, &l, err);
    if (rc == 0 && first && p->make)
        rc = postgres_link_script(l, postgres_schema, err);
    if (rc == 0)
        rc = has_volume(l, &has, err);
    if (rc == 0 && !has)
        rc = error_set(err, E_NOT_FOUND, "the PostgreSQL database has no volume");
    if (rc == 0)
        rc = postgres_link_prepare(l, err);
    if (rc == 0)
        rc = greet(p, l, run, err);
    if (rc == 0)
        *link = steal(l);
    return rc;
}

static void close_link(void *link)
{
    postgres_link_close(link);
}

static bool is_idle(const void *link)
{
    return postgres_link_is_idle(link);
}

static const struct link_pool_ops ops = {
    .server = "PostgreSQL",
    .away_ms = META_AWAY_MS,
    .open = open_link,
    .close = close_link,
    .is_idle = is_idle,
};

/* ---- calls ---- */

struct call {
    struct link_pool *pool;
    struct postgres_ask *asks;
    size_t count;
};

static int acknowledge(const struct call *c, unsigned run, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < c->count && rc == 0; i++) {
        if (c->asks[i].text != NULL || c->asks[i].statement != POSTGRES_NUMBER)
            continue;
        if (PQntuples(c->asks[i].result) != 1)
            return error_set(err, E_IN_DOUBT, "the row of dfc_volume is missing");
        rc = link_pool_acknowledge(c->pool, run, postgres_number(c->asks[i].result, 0, 0), err);
    }
    return rc;
}

static int try_call(void *call, void *link, unsigned run, bool *usable, struct error *err)
{
    const struct call *c = call;
    int rc = postgres_link_run(link, c->asks, c->count, err);
    if (rc == 0)
        rc = acknowledge(c, run, err);
    if (rc != 0) {
        postgres_asks_done(c->asks, c->count);
        for (size_t i = 0; i < c->count; i++)
            c->asks[i].result = NULL;
    }
    *usable = rc == 0;
    return rc;
}

int postgres_pool_run(struct postgres_pool *p, struct postgres_ask *asks, size_t count, bool again,
                      struct error *err)
{
    struct call c = {p->pool, asks, count};
    return link_pool_call(p->pool, try_call, &c, again, err);
}

/* ---- a snapshot ---- */

struct snapshot {
    postgres_use *read;
    void *context;
};

/* It waits for who reads the rows, and keeps no other client waiting. */
static int begin_snapshot(struct postgres_link *l, struct error *err)
{
    struct postgres_ask asks[] = {
        {.text = POSTGRES_BEGIN_READ},
        {.text = "SET LOCAL idle_in_transaction_session_timeout = 0"},
    };
    int rc = postgres_link_run(l, asks, 2, err);
    postgres_asks_done(asks, 2);
    return rc;
}

static int end_snapshot(struct postgres_link *l, struct error *err)
{
    struct postgres_ask ask = {.text = "COMMIT"};
    int rc = postgres_link_run(l, &ask, 1, err);
    postgres_asks_done(&ask, 1);
    return rc;
}

static int try_snapshot(void *snapshot, void *link, unsigned run, bool *usable, struct error *err)
{
    const struct snapshot *s = snapshot;
    (void)run;
    *usable = false;
    int rc = begin_snapshot(link, err);
    if (rc != 0)
        return rc;
    rc = s->read(s->context, link, err);
    if (rc == 0)
        rc = end_snapshot(link, err);
    *usable = rc == 0;
    /* Rows were given out: not again. */
    return rc == E_NET || rc == E_IN_DOUBT || rc == E_NOT_READY
               ? error_recode(err, E_IO, "read the snapshot")
               : rc;
}

int postgres_pool_snapshot(struct postgres_pool *p, postgres_use *read, void *context,
                           struct error *err)
{
    struct snapshot s = {read, context};
    return link_pool_call(p->pool, try_snapshot, &s, true, err);
}

/* ---- open and close ---- */

int postgres_pool_open(const char *url, bool make, unsigned most, unsigned timeout_ms,
                       struct postgres_pool **out, struct error *err)
{
    static const char lost[] = "the PostgreSQL server has lost commits that it acknowledged (a "
                               "restored backup, or a failover): mount the volume again";
    struct postgres_pool *p = xcalloc(1, sizeof *p);
    p->url = xstrdup(url);
    p->make = make;
    p->timeout_ms = timeout_ms;
    p->pool = link_pool_new(&ops, p, lost, most);
    int rc = link_pool_open(p->pool, err);
    if (rc != 0) {
        postgres_pool_close(p);
        return rc;
    }
    *out = p;
    return 0;
}

void postgres_pool_close(struct postgres_pool *p)
{
    if (p == NULL)
        return;
    link_pool_free(p->pool);
    free(p->url);
    free(p);
}
