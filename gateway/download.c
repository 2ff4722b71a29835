#include "gateway/download.h"

#include <stdatomic.h>

#include "common/mem.h"
#include "io/bpipe.h"
#include "net/client/tap.h"
#include "net/http/handler.h"

struct download {
    atomic_uint refs;
    struct bpipe *pipe;
    struct tap *tap; /* set before the pipe ends, and looked at after that; or NULL */
    /* The reply's: */
    struct http_request *req;
    int64_t left; /* bytes; -1: unknown */
    bool pipe_is_over;
};

struct download *download_new(size_t buffer_bytes)
{
    struct download *d = xcalloc(1, sizeof *d);
    *d = (struct download){.pipe = bpipe_new(buffer_bytes)};
    atomic_init(&d->refs, 1);
    return d;
}

void download_free(struct download *d)
{
    if (d == NULL || atomic_fetch_sub(&d->refs, 1) != 1)
        return;
    bpipe_unref(d->pipe);
    tap_free(d->tap);
    free(d);
}

struct bpipe *download_pipe(struct download *d)
{
    return d->pipe;
}

void download_set_tap(struct download *d, struct tap *tap)
{
    d->tap = tap;
}

/* --- the reply -------------------------------------------------------------------------------- */

static void wake(void *arg)
{
    const struct download *d = arg;
    http_wake(d->req);
}

static ssize_t count(struct download *d, ssize_t n)
{
    if (d->left >= 0)
        d->left -= n < d->left ? n : d->left;
    return n;
}

/* The pipe has ended. */
static ssize_t end_pipe(struct download *d)
{
    d->pipe_is_over = true;
    if (d->tap != NULL)
        tap_on_data(d->tap, wake, d);
    else
        return d->left > 0 ? HTTP_STREAM_CUT : HTTP_STREAM_END;
    return HTTP_STREAM_COPY;
}

static ssize_t read_pipe(struct download *d, char *out, size_t max)
{
    ssize_t n = bpipe_try_read(d->pipe, out, max, NULL);
    if (n == BPIPE_AGAIN)
        return 0;
    if (n == BPIPE_END)
        return end_pipe(d);
    return n < 0 ? HTTP_STREAM_CUT : count(d, n);
}

static ssize_t stream_value(struct download *d, ssize_t n)
{
    if (n > 0)
        return count(d, n);
    return n == TAP_EMPTY ? 0 : n == TAP_FULL ? HTTP_STREAM_FULL : HTTP_STREAM_CUT;
}

static ssize_t download_read(void *ctx, char *out, size_t max)
{
    struct download *d = ctx;
    ssize_t n = d->pipe_is_over ? HTTP_STREAM_COPY : read_pipe(d, out, max);
    if (n != HTTP_STREAM_COPY)
        return n;
    return tap_left(d->tap) == 0 ? HTTP_STREAM_END : stream_value(d, tap_read(d->tap, out, max));
}

static ssize_t download_splice(void *ctx, int to, size_t max)
{
    struct download *d = ctx;
    if (!d->pipe_is_over)
        return HTTP_STREAM_COPY;
    return tap_left(d->tap) == 0 ? HTTP_STREAM_END : stream_value(d, tap_splice(d->tap, to, max));
}

static void reply_ended(void *ctx)
{
    struct download *d = ctx;
    struct error why;
    error_set(&why, E_CANCELLED, "the client went away");
    bpipe_on_data(d->pipe, NULL, NULL);
    bpipe_cancel(d->pipe, &why);
    if (d->pipe_is_over && d->tap != NULL)
        tap_on_data(d->tap, NULL, NULL);
    download_free(d);
}

void download_reply(struct http_request *req, int status, int64_t length, struct download *d)
{
    static const struct http_stream_ops ops = {
        .read = download_read, .free = reply_ended, .splice = download_splice};
    atomic_fetch_add(&d->refs, 1);
    d->req = req;
    d->left = length;
    bpipe_on_data(d->pipe, wake, d);
    http_reply_stream(req, status, length, &ops, d);
}
