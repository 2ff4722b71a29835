/* A client of a fetch: it reads the file behind the fetcher, and sleeps where it has caught up.
 * What is no longer in memory, since the client is slow, the disk's readers bring back (as for any
 * object, object_read.c). */
#include "target/cold/internal.h"

#include "common/log.h"
#include "common/mem.h"
#include "io/reader.h"

struct cold_stream {
    struct fetch *f; /* a reference */
    struct http_request *req;
    uint64_t at;
    uint64_t fetched; /* in memory up to here */
    /* under the fetch's lock: */
    unsigned refs; /* the request's, and the reader's while it fetches */
    bool gone, fetching, sleeps;
    struct error err;
    struct cold_stream *next, **prev; /* among the sleepers */
};

static void unlink_sleeper(struct cold_stream *s)
{
    if (!s->sleeps)
        return;
    *s->prev = s->next;
    if (s->next != NULL)
        s->next->prev = s->prev;
    s->sleeps = false;
}

static void link_sleeper(struct cold_stream *s)
{
    if (s->sleeps)
        return;
    s->next = s->f->sleepers;
    s->prev = &s->f->sleepers;
    if (s->next != NULL)
        s->next->prev = &s->next;
    s->f->sleepers = s;
    s->sleeps = true;
}

void cold_stream_wake_all(struct fetch *f)
{
    while (f->sleepers != NULL) {
        struct cold_stream *s = f->sleepers;
        unlink_sleeper(s);
        http_wake(s->req);
    }
}

static void stream_unref(struct cold_stream *s)
{
    struct fetch *f = s->f;
    pthread_mutex_lock(&f->lock);
    bool last = --s->refs == 0;
    pthread_mutex_unlock(&f->lock);
    if (!last)
        return;
    free(s);
    fetch_unref(f);
}

static void stream_free(void *ctx)
{
    struct cold_stream *s = ctx;
    pthread_mutex_lock(&s->f->lock);
    s->gone = true;
    s->f->readers--;
    unlink_sleeper(s);
    pthread_mutex_unlock(&s->f->lock);
    stream_unref(s);
}

/* --- what a client may have ------------------------------------------------------------------- */

/* Up to where; with the lock held. */
static uint64_t limit_of(const struct fetch *f)
{
    if (f->state == FETCH_WHOLE || f->facts.length < 0)
        return f->stored;
    uint64_t size = (uint64_t)f->facts.length;
    uint64_t open = size > COLD_HELD_BYTES ? size - COLD_HELD_BYTES : 0;
    return f->stored < open ? f->stored : open;
}

/* > 0: so much can be read, 0: not now, or how the stream ends. */
static ssize_t stream_room(struct cold_stream *s, size_t max)
{
    struct fetch *f = s->f;
    ssize_t room = 0;
    pthread_mutex_lock(&f->lock);
    uint64_t left = limit_of(f) - s->at;
    if (s->err.code != 0 || (left == 0 && f->state == FETCH_FAILED))
        room = HTTP_STREAM_CUT;
    else if (left > 0)
        room = s->fetching ? 0 : (ssize_t)(left < max ? left : max);
    else if (f->state == FETCH_WHOLE)
        room = HTTP_STREAM_END;
    else
        link_sleeper(s);
    pthread_mutex_unlock(&f->lock);
    return room;
}

/* --- bytes that are not in memory ------------------------------------------------------------- */

static void stream_fetch(void *arg)
{
    struct cold_stream *s = arg;
    struct fetch *f = s->f;
    struct error err = ERROR_INIT;
    pthread_mutex_lock(&f->lock);
    uint64_t left = limit_of(f) - s->at;
    pthread_mutex_unlock(&f->lock);
    size_t len = left < READER_PIECE_BYTES ? (size_t)left : READER_PIECE_BYTES;
    reader_fetch(f->reader, f->fd, s->at, len, &err);
    pthread_mutex_lock(&f->lock);
    s->fetched = s->at + len;
    s->fetching = false;
    s->err = err;
    if (!s->gone)
        http_wake(s->req);
    pthread_mutex_unlock(&f->lock);
    stream_unref(s);
}

static void stream_begin_fetch(struct cold_stream *s)
{
    struct error err = ERROR_INIT;
    pthread_mutex_lock(&s->f->lock);
    s->fetching = true;
    s->refs++;
    pthread_mutex_unlock(&s->f->lock);
    if (reader_submit(s->f->reader, stream_fetch, s, &err) == 0)
        return;
    pthread_mutex_lock(&s->f->lock);
    s->fetching = false;
    s->err = err;
    http_wake(s->req);
    pthread_mutex_unlock(&s->f->lock);
    stream_unref(s);
}

/* --- the stream ------------------------------------------------------------------------------- */

static ssize_t stream_take(struct cold_stream *s, char *out, size_t len)
{
    struct error err = ERROR_INIT;
    size_t got = reader_pread_now(s->f->reader, s->f->fd, out, len, s->at);
    if (got == 0 && s->at < s->fetched) {
        uint64_t here = s->fetched - s->at;
        got = here < len ? (size_t)here : len;
        if (reader_pread(s->f->reader, s->f->fd, out, got, s->at, &err) != 0) {
            log_error("object cut off", lerr(&err));
            return HTTP_STREAM_CUT;
        }
    }
    if (got == 0) {
        stream_begin_fetch(s); /* from here on the reader looks at s->at */
        return 0;
    }
    s->at += got;
    return (ssize_t)got;
}

static ssize_t stream_read(void *ctx, char *out, size_t max)
{
    struct cold_stream *s = ctx;
    ssize_t room = stream_room(s, max);
    return room > 0 ? stream_take(s, out, (size_t)room) : room;
}

void cold_stream_reply(struct fetch *f, struct object_call *call)
{
    static const struct http_stream_ops ops = {.read = stream_read, .free = stream_free};
    struct cold_stream *s = xcalloc(1, sizeof *s);
    *s = (struct cold_stream){.f = f, .req = call->req, .refs = 1};
    metric_add(call->target->reads, 1);
    if (f->facts.length > 0)
        metric_add(call->target->read_bytes, (uint64_t)f->facts.length);
    cold_put_headers(call->req, &f->facts);
    http_reply_stream(call->req, 200, f->facts.length, &ops, s);
}
