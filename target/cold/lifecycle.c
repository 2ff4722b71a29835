/* Which way a cold read goes, and the threads it goes in. */
#include "target/cold/internal.h"

#include <errno.h>
#include <time.h>

#include "common/clock.h"
#include "common/condition.h"
#include "common/mem.h"
#include "common/origin.h"
#include "io/pool.h"
#include "io/shares.h"
#include "target/cold/back.h"
#include "target/backend/aws_temporary.h"
#include "target/backend/gates.h"
#include "target/backend/google_token.h"
#include "target/backend/outages.h"
#include "target/cold/list_pages.h"
#include "target/node/miss.h"
#include "target/node/thread_classes.h"
#include "target/store/name_queue.h"

enum { QUEUE_MAX = 65536, HURRY_MS = 2000, CONNECTIONS_PER_HOST = 256 };

/* --- which way -------------------------------------------------------------------------------- */

static bool has(const struct object_call *call, const char *header)
{
    return http_header(call->req, header) != NULL;
}

/* Can it only be answered by who has the object's attributes? */
static bool needs_attributes(const struct object_call *call, bool ranged)
{
    return has(call, "If-None-Match") || has(call, "If-Modified-Since") ||
           has(call, "If-Unmodified-Since") || (ranged && has(call, "If-Range")) ||
           (!ranged && has(call, "If-Match"));
}

void cold_serve(struct object_call *call)
{
    struct cold *c = call->target->cold;
    bool head = http_method(call->req) == HTTP_HEAD, ranged = false;
    char range[COLD_RANGE_MAX];
    struct error err = ERROR_INIT;
    if (object_call_wants_made(call))
        fetch_join(c, call, call, true);
    else if (!head && cold_pick_range(call, &ranged, range, &err) != 0)
        object_call_fail(call, "get", &err);
    else if (!head && needs_attributes(call, ranged))
        fetch_join(c, call, call, true);
    else if (head || ranged)
        cold_pass(c, call);
    else
        fetch_join(c, call, call, false);
}

static bool cold_take(struct object_call *call)
{
    if (call->bucket->props.backend == NULL)
        return false;
    if (back_is_pending(call, true)) /* the backend has still what was deleted */
        miss_ends(call);
    else
        cold_serve(call);
    return true;
}

const struct miss_source cold_miss = {.name = "backend", .take = cold_take};

/* --- waiting between tries -------------------------------------------------------------------- */

static bool wait_a_while(void *ctx, uint64_t ms)
{
    struct cold *c = ctx;
    const struct timespec until = clock_after(ms);
    pthread_mutex_lock(&c->lock);
    while (!c->stopping && pthread_cond_timedwait(&c->changed, &c->lock, &until) != ETIMEDOUT)
        ;
    bool goes_on = !c->stopping;
    pthread_mutex_unlock(&c->lock);
    return goes_on;
}

bool cold_is_stopping(struct cold *c)
{
    pthread_mutex_lock(&c->lock);
    bool stopping = c->stopping;
    pthread_mutex_unlock(&c->lock);
    return stopping;
}

/* --- names that are watched ------------------------------------------------------------------- */

void cold_watch_begin(struct cold *c, struct cold_watch *w)
{
    pthread_mutex_lock(&c->lock);
    w->written = false;
    w->next = c->watches;
    c->watches = w;
    pthread_mutex_unlock(&c->lock);
}

void cold_watch_end(struct cold *c, struct cold_watch *w)
{
    pthread_mutex_lock(&c->lock);
    struct cold_watch **at = &c->watches;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    pthread_mutex_unlock(&c->lock);
}

bool cold_watch_saw(struct cold *c, const struct cold_watch *w)
{
    pthread_mutex_lock(&c->lock);
    bool written = w->written;
    pthread_mutex_unlock(&c->lock);
    return written;
}

/* --- threads ---------------------------------------------------------------------------------- */

static int threads_new(enum thread_class class, const struct target_params *p,
                       struct cold_threads *t, struct error *err)
{
    uint64_t most = p->cold_parallel * p->cold_share / 100;
    int code = thread_class_new(class, p, &t->pool, err);
    if (code == 0)
        t->shares = shares_new(t->pool, most > 0 ? (unsigned)most : 1, QUEUE_MAX);
    return code;
}

static void threads_free(struct cold_threads *t)
{
    pool_free(t->pool);
    shares_free(t->shares);
}

int cold_submit(const struct cold_threads *t, const char *backend, void (*fn)(void *arg), void *arg,
                struct error *err)
{
    struct backend_spec spec;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    int code = backend_parse(backend, a, &spec, err);
    if (code != 0)
        return code;
    _cleanup_free_ char *origin = origin_normal(spec.endpoint);
    return shares_submit(t->shares, origin, fn, arg, err);
}

/* --- life ------------------------------------------------------------------------------------- */

static struct cold *cold_make(struct target *t)
{
    const struct target_params *p = &t->params;
    struct cold *c = xcalloc(1, sizeof *c);
    c->target = t;
    c->outward = (struct outward){.allow = t->allow, .state = t->state};
    c->env = (struct exchange_env){.rules = {.retries = (unsigned)p->backend_retries,
                                             .backoff_ms = p->backend_backoff,
                                             .backoff_max_ms = p->backend_backoff_max},
                                   .pause_ms = p->backend_pause,
                                   .ctx = c,
                                   .wait = wait_a_while,
                                   .tokens = google_tokens_new(),
                                   .keys = aws_temporary_new(),
                                   .gates = gates_new(),
                                   .outages = outages_new(),
                                   .endpoints = t->endpoints};
    c->stored = metric_get(M_cold_fetch_total, "outcome=\"stored\"");
    c->failed = metric_get(M_cold_fetch_total, "outcome=\"failed\"");
    c->bytes = metric_get(M_cold_fetch_bytes_total, NULL);
    c->passed = metric_get(M_cold_pass_total, NULL);
    c->written = metric_get(M_cold_write_total, "outcome=\"done\"");
    c->not_written = metric_get(M_cold_write_total, "outcome=\"failed\"");
    condition_init(&c->changed);
    name_table_init(&c->fetches, COLD_SLOTS);
    pthread_mutex_init(&c->lock, NULL);
    c->pages = list_pages_new(p->list_pages_memory);
    return c;
}

int cold_new(struct target *t, struct cold **out, struct error *err)
{
    const struct target_params *p = &t->params;
    struct cold *c = *out = cold_make(t);
    struct http_client_config config = {
        .connect_timeout_ms = p->backend_connect_timeout,
        .stall_timeout_ms = p->backend_timeout,
        .connections_per_host_max = CONNECTIONS_PER_HOST,
        .ca_file = *p->backend_ca != '\0' ? p->backend_ca : NULL,
    };
    int code = threads_new(THREADS_FETCHER, p, &c->fetchers, err);
    if (code == 0)
        code = threads_new(THREADS_ASKER, p, &c->askers, err);
    if (code == 0)
        code = thread_class_new(THREADS_WRITER, p, &c->writers, err);
    if (code == 0)
        c->turns = name_queue_new(c->writers, QUEUE_MAX);
    if (code == 0)
        code = loop_new("backend", &c->loop, err);
    if (code == 0)
        code = http_client_new(c->loop, &config, &c->asker, err);
    config.may_connect = outward_may_connect;
    config.may_connect_ctx = &c->outward;
    if (code == 0)
        code = http_client_new(c->loop, &config, &c->client, err);
    c->env.client = c->client;
    c->env.asker = c->asker;
    return code;
}

static void name_outage(const struct bucket *b, struct cold_outages *out)
{
    _cleanup_arena_ struct arena *a = arena_new(1024);
    struct backend_spec spec;
    struct error err = ERROR_INIT;
    if (backend_parse(b->props.backend, a, &spec, &err) != 0)
        return; /* of a later release: its name is enough */
    snprintf(out->endpoint, sizeof out->endpoint, "%.*s", (int)origin_len(spec.endpoint),
             spec.endpoint);
}

struct cold_outages cold_outages(const struct cold *c, const struct cluster_state *s)
{
    struct cold_outages out = {.buckets = 0};
    for (size_t i = 0; i < s->bmd.count; i++) {
        const struct bucket *b = &s->bmd.buckets[i];
        if (b->props.backend == NULL || !outages_has(c->env.outages, b->props.backend))
            continue;
        if (out.buckets++ == 0) {
            snprintf(out.bucket, sizeof out.bucket, "%s", b->name);
            name_outage(b, &out);
        }
    }
    return out;
}

struct http_client *cold_client(const struct cold *c)
{
    return c->client;
}

void cold_stop(struct cold *c)
{
    pthread_mutex_lock(&c->lock);
    c->stopping = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    gates_close(c->env.gates);
    if (c->client != NULL)
        http_client_hurry(c->client, HURRY_MS);
    if (c->asker != NULL)
        http_client_hurry(c->asker, HURRY_MS);
}

void cold_free(struct cold *c)
{
    if (c == NULL)
        return;
    pool_free(c->writers);
    threads_free(&c->fetchers);
    threads_free(&c->askers);
    name_queue_free(c->turns);
    list_pages_free(c->pages);
    http_client_free(c->client);
    http_client_free(c->asker);
    kept_free(c->env.tokens);
    aws_temporary_free(c->env.keys);
    gates_free(c->env.gates);
    outages_free(c->env.outages);
    if (c->loop != NULL)
        loop_free(c->loop);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    name_table_done(&c->fetches);
    free(c);
}
