#include "net/http/pipe.h"

#include "common/mem.h"

/* One joint belongs to one request and ends with it; the pipe's wake-ups are silenced first. */
struct joint {
    struct http_request *req;
    struct bpipe *pipe;
    void (*ended)(struct http_request *req, void *ctx);
    void *ctx;
    bool over;     /* ended() was called */
    uint64_t left; /* of a reply with a known length */
    bool bounded;
};

static struct joint *joint_new(struct http_request *req, struct bpipe *pipe)
{
    struct joint *j = xcalloc(1, sizeof *j);
    j->req = req;
    j->pipe = bpipe_ref(pipe);
    return j;
}

/* --- the body into the pipe ------------------------------------------------------------------- */

static void body_resume(void *arg)
{
    struct joint *j = arg;
    http_resume_body(j->req);
}

static void body_joint_free(void *arg)
{
    struct joint *j = arg;
    bpipe_on_space(j->pipe, NULL, NULL);
    bpipe_unref(j->pipe);
    free(j);
}

static void body_over(struct http_request *req, struct joint *j)
{
    if (!j->over) {
        j->over = true;
        j->ended(req, j->ctx);
    }
}

static size_t body_data(struct http_request *req, void *ctx, const char *data, size_t len)
{
    struct joint *j = ctx;
    ssize_t taken = bpipe_try_write(j->pipe, data, len, NULL);
    if (taken == BPIPE_AGAIN)
        return 0;
    if (taken > 0)
        return (size_t)taken;
    body_over(req, j); /* the reader has left: the rest goes nowhere */
    return len;
}

static void body_end(struct http_request *req, void *ctx)
{
    struct joint *j = ctx;
    bpipe_finish(j->pipe, NULL);
    body_over(req, j);
}

static void body_cut(struct http_request *req, void *ctx)
{
    struct joint *j = ctx;
    struct error why;
    error_set(&why, E_CANCELLED, "the connection from %s ended in the middle of the body",
              http_peer(req));
    bpipe_finish(j->pipe, &why);
}

void http_body_to_pipe(struct http_request *req, struct bpipe *pipe,
                       void (*ended)(struct http_request *req, void *ctx), void *ctx)
{
    static const struct http_body_ops ops = {.data = body_data, .end = body_end, .cut = body_cut};
    struct joint *j = joint_new(req, pipe);
    j->ended = ended;
    j->ctx = ctx;
    bpipe_on_space(pipe, body_resume, j);
    http_on_end(req, body_joint_free, j);
    http_take_body(req, &ops, j);
}

/* --- the pipe out as a reply ------------------------------------------------------------------ */

static void reply_wake(void *arg)
{
    struct joint *j = arg;
    http_wake(j->req);
}

static ssize_t reply_read(void *ctx, char *out, size_t max)
{
    struct joint *j = ctx;
    ssize_t got = bpipe_try_read(j->pipe, out, max, NULL);
    if (got == BPIPE_AGAIN)
        return 0;
    if (got == BPIPE_END)
        return j->bounded && j->left > 0 ? HTTP_STREAM_CUT : HTTP_STREAM_END;
    if (got < 0)
        return HTTP_STREAM_CUT;
    if (j->bounded)
        j->left -= (size_t)got <= j->left ? (size_t)got : j->left;
    return got;
}

static void reply_free(void *ctx)
{
    struct joint *j = ctx;
    struct error why;
    error_set(&why, E_CANCELLED, "the reader went away");
    bpipe_on_data(j->pipe, NULL, NULL);
    bpipe_cancel(j->pipe, &why);
    bpipe_unref(j->pipe);
    free(j);
}

void http_reply_pipe(struct http_request *req, int status, int64_t length, struct bpipe *pipe)
{
    static const struct http_stream_ops ops = {.read = reply_read, .free = reply_free};
    struct joint *j = joint_new(req, pipe);
    j->bounded = length >= 0;
    j->left = length >= 0 ? (uint64_t)length : 0;
    bpipe_on_data(pipe, reply_wake, j);
    http_reply_stream(req, status, length, &ops, j);
}
