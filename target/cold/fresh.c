#include "target/cold/fresh.h"

#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "hrw/hrw.h"
#include "target/cold/internal.h"
#include "target/cold/fresh_rule.h"
#include "target/node/miss.h"
#include "target/store/name_table.h"

enum { SLOTS = 256, NOTES = 1 << 15, PAUSES = 64 };

/* One question, until its answer; under the table's lock. */
struct question {
    struct name_entry entry;
    struct cold_fresh *table;
    uint64_t bucket_id;
    char *bucket, *name, *backend, *etag;
    int64_t modified_s;
    struct version version; /* of what is here */
    bool stale_ok;
    struct asker *askers;
};

struct asker {
    struct object_call *call;
    struct asker *next;
};

struct note {
    uint64_t key;
    int64_t asked_ms; /* wall time */
};

struct cold_fresh {
    struct target *target;
    pthread_mutex_t lock; /* of what follows */
    struct name_table questions;
    struct note notes[NOTES];
    struct note pauses[PAUSES]; /* by bucket: when a question went unanswered (monotonic) */
    metric_t *outcomes[REFUSED + 1];
};

static const char *const outcome_labels[] = {
    [FRESH] = "outcome=\"fresh\"",     [CHANGED] = "outcome=\"changed\"",
    [GONE] = "outcome=\"gone\"",       [UNKNOWN] = "outcome=\"unanswered\"",
    [REFUSED] = "outcome=\"refused\"",
};

struct cold_fresh *cold_fresh_new(struct target *t)
{
    struct cold_fresh *f = xcalloc(1, sizeof *f);
    f->target = t;
    name_table_init(&f->questions, SLOTS);
    pthread_mutex_init(&f->lock, NULL);
    for (size_t i = 0; i <= REFUSED; i++)
        f->outcomes[i] = metric_get(M_cold_ask_total, outcome_labels[i]);
    return f;
}

void cold_fresh_free(struct cold_fresh *f)
{
    if (f == NULL)
        return;
    pthread_mutex_destroy(&f->lock);
    name_table_done(&f->questions);
    free(f);
}

/* --- notes ------------------------------------------------------------------------------------ */

/* Of this version of the object: another one was not asked about. */
static uint64_t key_of(uint64_t bucket_id, const char *name, const struct version *v)
{
    return hrw_key(bucket_id ^ (v->counter << 20) ^ v->map, name, strlen(name));
}

static int64_t asked_at(struct cold_fresh *f, uint64_t key)
{
    const struct note *n = &f->notes[key % NOTES];
    pthread_mutex_lock(&f->lock);
    int64_t at = n->key == key ? n->asked_ms : 0;
    pthread_mutex_unlock(&f->lock);
    return at;
}

static void note_answer(struct cold_fresh *f, uint64_t key)
{
    pthread_mutex_lock(&f->lock);
    f->notes[key % NOTES] = (struct note){.key = key, .asked_ms = clock_wall_ms()};
    pthread_mutex_unlock(&f->lock);
}

static void note_silence(struct cold_fresh *f, uint64_t bucket_id)
{
    pthread_mutex_lock(&f->lock);
    f->pauses[bucket_id % PAUSES] =
        (struct note){.key = bucket_id, .asked_ms = (int64_t)clock_ms()};
    pthread_mutex_unlock(&f->lock);
}

static bool is_paused(struct cold_fresh *f, uint64_t bucket_id)
{
    const struct note *n = &f->pauses[bucket_id % PAUSES];
    pthread_mutex_lock(&f->lock);
    bool paused = n->key == bucket_id && n->asked_ms > 0 &&
                  clock_ms() - (uint64_t)n->asked_ms < f->target->params.backend_pause;
    pthread_mutex_unlock(&f->lock);
    return paused;
}

/* --- the table of questions ------------------------------------------------------------------- */

static void question_free(struct question *q)
{
    free(q->bucket);
    free(q->name);
    free(q->backend);
    free(q->etag);
    free(q);
}

static struct question *question_new(struct cold_fresh *f, const struct bucket *b,
                                     const struct attr *a)
{
    const struct kept kept = fresh_kept(a);
    struct question *q = xcalloc(1, sizeof *q);
    *q = (struct question){.table = f,
                           .bucket_id = b->id,
                           .bucket = xstrdup(b->name),
                           .name = xstrdup(a->name),
                           .backend = xstrdup(b->props.backend),
                           .etag = kept.etag != NULL ? xstrdup(kept.etag) : NULL,
                           .modified_s = kept.modified_s,
                           .version = a->version,
                           .stale_ok = !b->props.stale_off};
    return q;
}

/* About this version of the call's object; NULL: there is none. */
static struct question *find(const struct cold_fresh *f, const struct object_call *call,
                             const struct version *v)
{
    struct name_entry *e = name_table_find(&f->questions, call->bucket->id, call->name);
    while (e != NULL && version_compare(&((struct question *)e)->version, v) != 0)
        e = name_table_same(e);
    return (struct question *)e;
}

/* True: it is a new one, to be asked. */
static bool table_join(struct cold_fresh *f, struct object_call *call, const struct attr *a,
                       struct question **out)
{
    struct asker *asker = xcalloc(1, sizeof *asker);
    asker->call = call;
    pthread_mutex_lock(&f->lock);
    struct question *q = find(f, call, &a->version);
    bool fresh = q == NULL;
    if (fresh) {
        q = question_new(f, call->bucket, a);
        name_table_add(&f->questions, &q->entry, q->bucket_id, q->name);
    }
    asker->next = q->askers;
    q->askers = asker;
    pthread_mutex_unlock(&f->lock);
    *out = q;
    return fresh;
}

/* Those who wait are the caller's. */
static struct asker *table_remove(struct question *q)
{
    struct cold_fresh *f = q->table;
    pthread_mutex_lock(&f->lock);
    name_table_remove(&f->questions, &q->entry);
    pthread_mutex_unlock(&f->lock);
    return q->askers;
}

/* --- the answer ------------------------------------------------------------------------------- */

static void serve_asker(const struct question *q, struct object_call *call, enum freshness verdict,
                        const struct error *err)
{
    struct error copy = *err;
    log_set_request(http_request_id(call->req));
    call->read.validated = true;
    if (verdict == UNKNOWN && q->stale_ok)
        http_reply_header(call->req, "Dfc-Stale", "true");
    if (verdict == FRESH || (verdict == UNKNOWN && q->stale_ok)) {
        call->serve(call);
    } else if (verdict == CHANGED) {
        call->read.replaces = q->version;
        cold_serve(call);
    } else if (verdict == GONE) {
        miss_ends(call);
    } else {
        object_call_fail(call, "get", &copy);
    }
}

static void serve_askers(struct question *q, enum freshness verdict, const struct error *err)
{
    for (struct asker *a = table_remove(q), *next; a != NULL; a = next) {
        next = a->next;
        serve_asker(q, a->call, verdict, err);
        free(a);
    }
    log_set_request(NULL);
    question_free(q);
}

/* With no tries after the first where what is here will do. */
static int question_put(const struct question *q, struct backend_facts *facts, struct error *err)
{
    struct cold *c = q->table->target->cold;
    struct exchange_env env = c->env;
    struct bpipe *none = NULL;
    if (q->stale_ok)
        env.once = true;
    const struct backend_ask ask = {.method = HTTP_HEAD,
                                    .name = q->name,
                                    .if_none_match = q->etag,
                                    .if_modified_since_s = q->modified_s};
    return exchange_begin(&env, q->backend, &ask, COLD_PIPE_BYTES, facts, &none, err);
}

static void remove_gone(const struct question *q)
{
    struct error err = ERROR_INIT;
    bool gone = false;
    if (object_evict_version(q->table->target->store, q->bucket_id, q->name, &q->version, &gone,
                             &err) != 0)
        log_warn("object that its backend has no more not removed", lstr("bucket", q->bucket),
                 lstr("name", q->name), lerr(&err));
}

static enum freshness question_answer(const struct question *q, struct error *err)
{
    struct cold_fresh *f = q->table;
    struct backend_facts facts = {.status = 0};
    const struct kept kept = {.etag = q->etag, .modified_s = q->modified_s};
    int code = question_put(q, &facts, err);
    enum freshness verdict = fresh_verdict(&kept, code, &facts);
    metric_add(f->outcomes[verdict], 1);
    if (verdict == FRESH)
        note_answer(f, key_of(q->bucket_id, q->name, &q->version));
    else if (verdict == GONE)
        remove_gone(q);
    else if (verdict == UNKNOWN) {
        note_silence(f, q->bucket_id);
        log_warn("backend not asked whether an object has changed", lstr("bucket", q->bucket),
                 lstr("name", q->name), lerr(err));
    }
    return verdict;
}

static void question_run(void *arg)
{
    struct question *q = arg;
    struct error err = ERROR_INIT;
    enum freshness verdict = question_answer(q, &err);
    serve_askers(q, verdict, &err);
}

enum freshness cold_fresh_now(struct target *t, const struct bucket *b, const struct attr *a,
                              struct error *err)
{
    int64_t asked_ms = asked_at(t->fresh, key_of(b->id, a->name, &a->version));
    if (!fresh_is_due(&b->props, a, asked_ms, clock_wall_ms()))
        return FRESH;
    struct question *q = question_new(t->fresh, b, a);
    q->stale_ok = false; /* a job waits: all tries are made */
    enum freshness verdict = question_answer(q, err);
    question_free(q);
    return verdict;
}

enum freshness cold_fresh_of_url(struct target *t, const char *url, const struct attr *a,
                                 struct error *err)
{
    const struct kept kept = fresh_kept(a);
    const struct backend_ask ask = {.method = HTTP_HEAD,
                                    .name = a->name,
                                    .url = url,
                                    .if_none_match = kept.etag,
                                    .if_modified_since_s = kept.modified_s};
    struct backend_facts facts = {.status = 0};
    struct bpipe *none = NULL;
    const char *host = strstr(url, "://") + 3;
    _cleanup_free_ char *origin =
        xprintf("%.*s", (int)((size_t)(host - url) + strcspn(host, "/?#")), url);
    if (kept.etag == NULL && kept.modified_s == 0)
        return CHANGED;
    int code = exchange_begin(&t->cold->env, origin, &ask, COLD_PIPE_BYTES, &facts, &none, err);
    return fresh_verdict(&kept, code, &facts);
}

bool cold_fresh_is_due(const struct object_call *call, const struct attr *a)
{
    struct cold_fresh *f = call->target->fresh;
    if (call->read.validated || call->read.holder || call->bucket->props.backend == NULL ||
        call->bucket->props.validate == VALIDATE_NEVER)
        return false;
    int64_t asked_ms = asked_at(f, key_of(call->bucket->id, call->name, &a->version));
    return fresh_is_due(&call->bucket->props, a, asked_ms, clock_wall_ms());
}

void cold_fresh_ask(struct object_call *call, const struct attr *a)
{
    struct cold_fresh *f = call->target->fresh;
    struct error err = ERROR_INIT;
    struct question *q;
    if (!table_join(f, call, a, &q))
        return;
    if (q->stale_ok && is_paused(f, q->bucket_id))
        serve_askers(q, UNKNOWN, &err);
    else if (cold_submit(&f->target->cold->askers, call->bucket->props.backend, question_run, q,
                         &err) != 0)
        serve_askers(q, REFUSED, &err);
}
