/* One object on its way from the backend into the store, in a fetcher's thread:
 *
 *   join ─▶ WAITS ── head ─▶ STORING ── last byte, checksum, commit ─▶ WHOLE
 *             │                 │ cut: goes on by a range, a few times
 *             │                 └──────────────────────────────────▶ FAILED: streams are cut
 *             └─ no room ─▶ NO_ROOM: everybody for himself; another error ─▶ FAILED: it is replied
 *
 * It stands in the table from its first client to its end, so that all who come meanwhile join it.
 * Who has looked into the store before its end and joins after it begins another one, which looks
 * into the store first. */
#include "target/cold/internal.h"

#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/rng.h"
#include "io/reader.h"
#include "target/cold/ranges.h"
#include "target/copies/copies.h"
#include "target/node/miss.h"
#include "target/store/name_queue.h"

struct waiter {
    struct object_call *call;
    bool patient;
    struct waiter *next;
};

/* --- the table -------------------------------------------------------------------------------- */

static char *copy_of(const char *text)
{
    return text != NULL ? xstrdup(text) : NULL;
}

/* "http://host:port" */
static char *origin_of(const char *url)
{
    const char *host = strstr(url, "://");
    size_t len = host != NULL ? (size_t)(host - url) + 3 : 0;
    return xprintf("%.*s", (int)(len + strcspn(url + len, "/?#")), url);
}

static struct fetch *fetch_new(struct cold *c, const struct cold_wanted *w)
{
    const struct bucket *b = w->bucket;
    struct fetch *f = xcalloc(1, sizeof *f);
    *f = (struct fetch){.cold = c,
                        .bucket_id = b->id,
                        .bucket = xstrdup(b->name),
                        .name = xstrdup(w->name),
                        .backend = w->url != NULL ? origin_of(w->url) : xstrdup(b->props.backend),
                        .url = copy_of(w->url),
                        .source = copy_of(w->source),
                        .pace = w->pace,
                        .keep = w->keep,
                        .ctx = w->ctx,
                        .durability = b->props.durability,
                        .checksum = b->props.checksum,
                        .replaces = w->replaces,
                        .placed = w->placed,
                        .fd = -1};
    atomic_init(&f->refs, 1);
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->ended, NULL);
    return f;
}

void fetch_unref(struct fetch *f)
{
    if (atomic_fetch_sub(&f->refs, 1) != 1)
        return;
    if (f->fd >= 0)
        close(f->fd);
    reader_unref(f->reader);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->ended);
    free(f->url);
    free(f->source);
    free(f->backend);
    free(f->bucket);
    free(f->name);
    free(f);
}

/* One that a write has overtaken reads what is no more: nobody joins it. */
static struct fetch *find(const struct cold *c, uint64_t bucket_id, const char *name)
{
    struct name_entry *e = name_table_find(&c->fetches, bucket_id, name);
    while (e != NULL && atomic_load(&((struct fetch *)e)->overtaken))
        e = name_table_same(e);
    return (struct fetch *)e;
}

/* A reference.  *fresh: it has to be run. */
static struct fetch *table_find(struct cold *c, const struct cold_wanted *w, bool *fresh)
{
    pthread_mutex_lock(&c->lock);
    struct fetch *f = find(c, w->bucket->id, w->name);
    *fresh = f == NULL;
    if (f == NULL) {
        f = fetch_new(c, w);
        name_table_add(&c->fetches, &f->entry, f->bucket_id, f->name);
    }
    atomic_fetch_add(&f->refs, 1);
    pthread_mutex_unlock(&c->lock);
    return f;
}

void fetch_overtake(struct cold *c, uint64_t bucket_id, const char *name)
{
    pthread_mutex_lock(&c->lock);
    for (struct name_entry *e = name_table_find(&c->fetches, bucket_id, name); e != NULL;
         e = name_table_same(e))
        atomic_store(&((struct fetch *)e)->overtaken, true);
    for (struct cold_watch *w = c->watches; w != NULL; w = w->next)
        w->written |= w->bucket_id == bucket_id && strcmp(w->name, name) == 0;
    pthread_mutex_unlock(&c->lock);
}

/* The table's reference becomes the caller's. */
static void table_remove(struct fetch *f)
{
    struct cold *c = f->cold;
    pthread_mutex_lock(&c->lock);
    name_table_remove(&c->fetches, &f->entry);
    pthread_mutex_unlock(&c->lock);
}

/* --- those who wait --------------------------------------------------------------------------- */

/* Can it be served as the fetch stands? */
static bool is_ripe(const struct fetch *f, const struct waiter *w)
{
    return f->state > FETCH_STORING || (f->state == FETCH_STORING && !w->patient);
}

/* With the state in which it is to be served. */
static struct waiter *take_waiter(struct fetch *f, enum fetch_state *state)
{
    pthread_mutex_lock(&f->lock);
    struct waiter **at = &f->waiters, *w;
    while (*at != NULL && !is_ripe(f, *at))
        at = &(*at)->next;
    w = *at;
    if (w != NULL) {
        *at = w->next;
        *state = f->state;
        f->readers += f->state == FETCH_STORING;
    }
    pthread_mutex_unlock(&f->lock);
    return w;
}

/* Its messages are as if the client's own fetch had failed. */
static void fail_waiter(struct fetch *f, struct object_call *call)
{
    struct error err = f->err; /* it does not change any more */
    if (err.code == E_OBJECT_NOT_FOUND)
        miss_next(call);
    else
        object_call_fail(call, "get", &err);
}

/* Members and digests are made of what is here alone. */
static void fail_for_room(struct object_call *call)
{
    struct error err;
    error_set(&err, E_NO_SPACE, "no room to bring the object here from the backend");
    object_call_fail(call, "get", &err);
}

static void serve_waiter(struct fetch *f, struct object_call *call, enum fetch_state state)
{
    log_set_request(http_request_id(call->req));
    if (state == FETCH_STORING) {
        atomic_fetch_add(&f->refs, 1);
        cold_stream_reply(f, call);
    } else if (state == FETCH_WHOLE) {
        call->read.validated = true; /* just now */
        call->serve(call);
    } else if (state == FETCH_NO_ROOM && object_call_wants_made(call)) {
        fail_for_room(call);
    } else if (state == FETCH_NO_ROOM) {
        cold_pass(f->cold, call);
    } else {
        fail_waiter(f, call);
    }
    log_set_request(NULL);
}

void fetch_serve_waiters(struct fetch *f)
{
    enum fetch_state state = FETCH_WAITS;
    struct waiter *w;
    while ((w = take_waiter(f, &state)) != NULL) {
        serve_waiter(f, w->call, state);
        free(w);
    }
}

static void fetch_set_state(struct fetch *f, enum fetch_state state, const struct error *err)
{
    pthread_mutex_lock(&f->lock);
    f->state = state;
    if (err != NULL)
        f->err = *err;
    pthread_cond_broadcast(&f->ended);
    cold_stream_wake_all(f);
    pthread_mutex_unlock(&f->lock);
    fetch_serve_waiters(f);
}

/* --- storing ---------------------------------------------------------------------------------- */

struct storing {
    struct fetch *f;
    struct object_put *put;
    struct bpipe *pipe;
    bool is_whole; /* the pipe is that of the first answer */
    uint64_t end;  /* up to where it is read; UINT64_MAX: to its end */
    char *piece;
    unsigned resumed;
    struct cold_pace pace;
};

static int not_whole(const struct fetch *f, struct error *err)
{
    return error_set(err, E_BACKEND, "the backend's answer broke off after %llu of %lld bytes",
                     (unsigned long long)f->stored, (long long)f->facts.length);
}

static bool has_other_owners(const struct fetch *f)
{
    _cleanup_state_ const struct cluster_state *now = state_current(f->cold->target->state);
    return f->placed != 0 && f->placed != now->smap.placed;
}

/* A download of one copy while the bucket gets more: the repair need not see it. */
static bool has_other_copies(const struct fetch *f)
{
    _cleanup_state_ const struct cluster_state *now = state_current(f->cold->target->state);
    const struct bucket *b = bmd_bucket_by_id(&now->bmd, f->bucket_id);
    return f->url != NULL && f->keep == NULL && b != NULL && bucket_has_copies(b);
}

/* Under the name's lock: a write that came between, here or at another owner, has the last word. */
static int check_overtaken(void *ctx, const struct attr *current, struct error *err)
{
    struct fetch *f = ctx;
    (void)current;
    if (has_other_copies(f))
        return error_set(err, E_STALE_MAP, "the bucket has got more copies meanwhile");
    if (has_other_owners(f))
        return error_set(err, E_PRECONDITION, "the owners have changed since '%s' was asked for",
                         f->name);
    if (!atomic_load(&f->overtaken) && !name_queue_busy(f->cold->turns, f->bucket_id, f->name))
        return 0;
    return error_set(err, E_PRECONDITION, "object '%s' is being written", f->name);
}

/* How the backend names these bytes, and what they are an encoding of. */
static void put_meta(const struct fetch *f, struct buf *meta)
{
    const struct backend_facts *facts = &f->facts;
    char seconds[24];
    snprintf(seconds, sizeof seconds, "%lld", (long long)facts->modified_s);
    if (backend_etag_is_strong(facts->etag))
        attr_meta_add(meta, OBJECT_BACKEND_ETAG, facts->etag);
    else if (facts->modified_s > 0)
        attr_meta_add(meta, OBJECT_BACKEND_MODIFIED, seconds);
    if (f->source != NULL)
        attr_meta_add(meta, OBJECT_SOURCE, f->source);
    if (*facts->encoding != '\0')
        attr_meta_add(meta, OBJECT_BACKEND_ENCODING, facts->encoding);
    if (f->url == NULL)
        buf_append(meta, facts->meta, facts->meta_len);
}

static int put_begin(struct storing *s, struct error *err)
{
    struct fetch *f = s->f;
    _cleanup_buf_ struct buf meta = BUF_INIT;
    put_meta(f, &meta);
    if (f->facts.meta_lost)
        log_warn("user metadata not kept: the backend has more than there is room for",
                 lstr("bucket", f->bucket), lstr("name", f->name));
    const struct object_put_spec spec = {
        .bucket_id = f->bucket_id,
        .name = f->name,
        .size = f->facts.length >= 0 ? (uint64_t)f->facts.length : OBJECT_SIZE_UNKNOWN,
        .durability = f->durability,
        .checksum = f->checksum,
        .expect = f->facts.sum.type != CHECKSUM_NONE ? &f->facts.sum : NULL,
        .content_type = *f->facts.content_type != '\0' ? f->facts.content_type : NULL,
        .meta = meta.len > 0 ? meta.data : NULL,
        .meta_len = meta.len,
        .condition = {.check = check_overtaken, .ctx = f},
        .yields = true,
    };
    int code = object_put_begin(f->cold->target->store, &spec, &s->put, err);
    return code != 0 ? code : object_put_share(s->put, &f->fd, &f->reader, err);
}

static int store_piece(struct storing *s, size_t len, struct error *err)
{
    struct fetch *f = s->f;
    int code = object_put_write(s->put, s->piece, len, err);
    if (code == 0)
        code = object_put_flush(s->put, err);
    if (code != 0)
        return code;
    metric_add(f->cold->bytes, len);
    pthread_mutex_lock(&f->lock);
    f->stored += len;
    cold_stream_wake_all(f);
    pthread_mutex_unlock(&f->lock);
    return 0;
}

static size_t piece_room(const struct storing *s)
{
    uint64_t left = s->end - s->f->stored;
    return left < COLD_PIECE_BYTES ? (size_t)left : COLD_PIECE_BYTES;
}

/* Until all is there that it is read for, or the pipe ends, whichever way: *broken. */
static int store_pipe(struct storing *s, bool *broken, struct error *err)
{
    ssize_t n = 0;
    *broken = false;
    while (piece_room(s) > 0 && (n = bpipe_read(s->pipe, s->piece, piece_room(s), err)) > 0) {
        int code = store_piece(s, (size_t)n, err);
        if (code == 0)
            code = cold_pace_check(s->f, &s->pace, (size_t)n, err);
        if (code != 0)
            return code;
        if (!cold_pace_wait(s->f, &s->pace, (size_t)n))
            return error_set(err, E_ABORTED, "the job that wanted it has ended");
        if (cold_is_stopping(s->f->cold) && fetch_is_unwanted(s->f))
            return error_set(err, E_NOT_READY, "this node is stopping");
    }
    *broken = n < 0;
    if (n == 0 && s->end != UINT64_MAX && s->f->stored < s->end) {
        error_set(err, E_BACKEND, "a range ended early");
        *broken = true;
    }
    return 0;
}

static void close_pipe(struct storing *s, const struct error *why)
{
    if (s->pipe != NULL)
        bpipe_cancel(s->pipe, why);
    bpipe_unref(steal(s->pipe));
    cold_pace_pause(&s->pace);
    s->is_whole = false;
}

/* The rest, as far as it is read, of the same version.  A server that knows no ranges, or has
 * another version by now, ends it. */
static int ask_for_rest(struct storing *s, struct error *err)
{
    struct fetch *f = s->f;
    struct backend_facts facts;
    char range[COLD_RANGE_MAX];
    int len = snprintf(range, sizeof range, "bytes=%llu-", (unsigned long long)f->stored);
    if (s->end != UINT64_MAX)
        snprintf(range + len, sizeof range - (size_t)len, "%llu", (unsigned long long)(s->end - 1));
    const struct backend_ask ask = {.method = HTTP_GET,
                                    .name = f->name,
                                    .url = f->url,
                                    .range = range,
                                    .if_match = f->facts.etag};
    int code =
        exchange_begin(&f->cold->env, f->backend, &ask, COLD_PIPE_BYTES, &facts, &s->pipe, err);
    if (code != 0)
        return code;
    if (facts.status != 206 || facts.offset != f->stored || facts.size != f->facts.length ||
        strcmp(facts.etag, f->facts.etag) != 0)
        return error_set(err, E_BACKEND,
                         "the backend's answer broke off, and cannot be carried on");
    return 0;
}

static bool can_resume(const struct storing *s)
{
    const struct fetch *f = s->f;
    return f->facts.length >= 0 && backend_etag_is_strong(f->facts.etag) &&
           f->stored < (uint64_t)f->facts.length && s->resumed < f->cold->env.rules.retries;
}

/* Up to s->end. */
static int store_range(struct storing *s, struct error *err)
{
    for (;;) {
        bool broken;
        int code = store_pipe(s, &broken, err);
        if (code != 0 || !broken)
            return code;
        struct error why = ERROR_INIT;
        uint64_t luck, wait_ms;
        random_bytes(&luck, sizeof luck);
        if (!can_resume(s))
            return not_whole(s->f, err);
        close_pipe(s, err);
        s->resumed++;
        if (!failure_wait(&s->f->cold->env.rules, s->resumed, 0, luck, &wait_ms) ||
            !s->f->cold->env.wait(s->f->cold, wait_ms) || ask_for_rest(s, &why) != 0)
            return not_whole(s->f, err);
        *err = ERROR_INIT; /* it goes on */
        metric_add(metric_get(M_backend_retries_total, NULL), 1);
    }
}

/* Ranges are not to be had: what is left comes in one piece. */
static int go_on_whole(struct storing *s, struct error *err)
{
    struct error why = ERROR_INIT;
    s->end = UINT64_MAX;
    if (s->is_whole)
        return 0;
    close_pipe(s, NULL);
    return ask_for_rest(s, &why) == 0 ? 0 : not_whole(s->f, err);
}

static int store_next_range(struct storing *s, struct cold_ranges *ranges, struct error *err)
{
    struct bpipe *pipe;
    struct error why = ERROR_INIT;
    uint64_t end;
    if (cold_ranges_next(ranges, &pipe, &end, &why) != 0) {
        int code = go_on_whole(s, err);
        return code != 0 ? code : store_range(s, err);
    }
    close_pipe(s, NULL);
    s->pipe = pipe;
    s->end = end;
    s->resumed = 0;
    return store_range(s, err);
}

static int store_all(struct storing *s, struct error *err)
{
    struct cold_ranges *ranges = cold_ranges_begin(s->f, &s->end);
    int code = store_range(s, err);
    while (code == 0 && s->end < (uint64_t)s->f->facts.length)
        code = store_next_range(s, ranges, err);
    cold_ranges_end(ranges);
    return code;
}

static int fetch_store(struct storing *s, struct error *err)
{
    struct fetch *f = s->f;
    if (f->facts.status != 200)
        return error_set(err, E_BACKEND, "the backend answered a request for the whole with %d",
                         f->facts.status);
    int code = put_begin(s, err);
    if (code != 0)
        return code;
    fetch_set_state(f, FETCH_STORING, NULL);
    code = store_all(s, err);
    if (code == 0)
        code = f->keep != NULL ? f->keep(f->ctx, steal(s->put), err)
                               : object_put_commit_wait(steal(s->put), err);
    if (code == E_CHECKSUM || code == E_LENGTH)
        error_recode(err, E_BACKEND, "the backend sent other bytes than it announced");
    if (code == E_PRECONDITION) /* overtaken: whole and right, for those who read it */
        *err = ERROR_INIT;
    return err->code;
}

static int fetch_from_backend(struct fetch *f, struct error *err)
{
    struct storing s = {.f = f, .is_whole = true, .end = UINT64_MAX};
    const struct backend_ask ask = {.method = HTTP_GET, .name = f->name, .url = f->url};
    int code =
        exchange_begin(&f->cold->env, f->backend, &ask, COLD_PIPE_BYTES, &f->facts, &s.pipe, err);
    if (code == 0) {
        s.piece = xmalloc(COLD_PIECE_BYTES);
        code = fetch_store(&s, err);
        close_pipe(&s, err);
        object_put_abort(s.put);
        free(s.piece);
    }
    return code;
}

/* --- the fetch -------------------------------------------------------------------------------- */

static bool is_there(const struct fetch *f)
{
    struct object o;
    return f->keep == NULL &&
           object_head(f->cold->target->store, f->bucket_id, f->name, &o, NULL) == 0 &&
           version_compare(&o.attr.version, &f->replaces) > 0;
}

static void say_end(const struct fetch *f, const struct error *err)
{
    metric_add(err->code == 0 ? f->cold->stored : f->cold->failed, 1);
    if (err->code != 0 && err->code != E_OBJECT_NOT_FOUND)
        log_warn("cold fetch failed", lstr("bucket", f->bucket), lstr("name", f->name), lerr(err));
}

static void fetch_run(void *arg)
{
    struct fetch *f = arg;
    struct error err = ERROR_INIT;
    enum fetch_state end = FETCH_WHOLE;
    if (!is_there(f)) {
        fetch_from_backend(f, &err);
        say_end(f, &err);
    }
    bool not_kept = err.code == E_NO_SPACE || err.code == E_PRECONDITION;
    if (not_kept && f->state == FETCH_WAITS)
        end = FETCH_NO_ROOM;
    else if (err.code != 0)
        end = FETCH_FAILED;
    table_remove(f);
    fetch_set_state(f, end, &err);
    fetch_unref(f);
}

static void add_waiter(struct fetch *f, struct object_call *call, bool patient)
{
    struct waiter *w = xcalloc(1, sizeof *w);
    *w = (struct waiter){.call = call, .patient = patient};
    pthread_mutex_lock(&f->lock);
    struct waiter **at = &f->waiters;
    while (*at != NULL)
        at = &(*at)->next;
    *at = w;
    pthread_mutex_unlock(&f->lock);
}

void fetch_join(struct cold *c, const struct object_call *names, struct object_call *call,
                bool patient)
{
    bool fresh;
    struct error err = ERROR_INIT;
    const struct cold_wanted wanted = {.bucket = names->bucket,
                                       .name = names->name,
                                       .replaces = names->read.replaces,
                                       .placed = names->state->smap.placed};
    struct fetch *f = table_find(c, &wanted, &fresh);
    if (call != NULL)
        add_waiter(f, call, patient);
    if (fresh && cold_submit(&c->fetchers, f->backend, fetch_run, f, &err) != 0) {
        table_remove(f);
        fetch_set_state(f, FETCH_FAILED, &err);
        fetch_unref(f);
    } else {
        fetch_serve_waiters(f);
    }
    fetch_unref(f);
}

int cold_bring(struct cold *c, const struct cold_wanted *wanted, uint64_t *bytes, struct error *err)
{
    bool fresh;
    struct fetch *f = table_find(c, wanted, &fresh);
    if (fresh)
        fetch_run(f);
    pthread_mutex_lock(&f->lock);
    while (f->state <= FETCH_STORING)
        pthread_cond_wait(&f->ended, &f->lock);
    *err = f->err;
    *bytes = fresh && f->state == FETCH_WHOLE ? f->stored : 0;
    pthread_mutex_unlock(&f->lock);
    fetch_unref(f);
    return err->code;
}
