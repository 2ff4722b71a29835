/* Two threads meet in `lock`: the loop's, which brings bytes, and the HTTP thread, which takes them
 * until the reply or the connection ends. */
#include "gateway/uploads/slow_reply.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/buf.h"
#include "common/mem.h"
#include "common/param.h"
#include "gateway/reply.h"
#include "io/loop.h"
#include "s3/xml_write.h"

struct slow_reply {
    struct http_request *req; /* until it has begun, or with `lock` until it is `gone` */
    struct loop_timer *timer;
    char *resource, *request_id; /* of the error's document */
    atomic_uint refs;            /* the caller's, the stream's */
    bool has_begun;              /* the loop's */
    pthread_mutex_t lock;        /* of what follows */
    struct buf waiting;
    size_t taken; /* of `waiting` */
    bool over, gone;
};

static void unref(struct slow_reply *r)
{
    if (atomic_fetch_sub(&r->refs, 1) != 1)
        return;
    pthread_mutex_destroy(&r->lock);
    buf_done(&r->waiting);
    free(r->resource);
    free(r->request_id);
    free(r);
}

/* --- the stream, in an HTTP thread ------------------------------------------------------------ */

static ssize_t give(void *ctx, char *out, size_t max)
{
    struct slow_reply *r = ctx;
    pthread_mutex_lock(&r->lock);
    size_t left = r->waiting.len - r->taken, n = left < max ? left : max;
    if (n > 0)
        memcpy(out, r->waiting.data + r->taken, n);
    r->taken += n;
    bool over = r->over;
    pthread_mutex_unlock(&r->lock);
    return n > 0 ? (ssize_t)n : over ? HTTP_STREAM_END : 0;
}

static void stream_ended(void *ctx)
{
    struct slow_reply *r = ctx;
    pthread_mutex_lock(&r->lock);
    r->gone = true;
    pthread_mutex_unlock(&r->lock);
    unref(r);
}

/* --- the loop's side -------------------------------------------------------------------------- */

static void add(struct slow_reply *r, const char *text, bool over)
{
    pthread_mutex_lock(&r->lock);
    buf_puts(&r->waiting, text);
    r->over = over;
    if (!r->gone)
        http_wake(r->req);
    pthread_mutex_unlock(&r->lock);
}

static void begin(struct slow_reply *r)
{
    static const struct http_stream_ops ops = {.read = give, .free = stream_ended};
    r->has_begun = true;
    atomic_fetch_add(&r->refs, 1);
    buf_puts(&r->waiting, XML_DECLARATION);
    http_reply_constant(r->req, "Content-Type", gateway_error_form.content_type);
    http_reply_stream(r->req, 200, -1, &ops, r);
}

static void it_takes_long(void *arg)
{
    struct slow_reply *r = arg;
    if (r->has_begun)
        add(r, " ", false);
    else
        begin(r);
}

struct slow_reply *slow_reply_new(struct http_request *req, const struct gateway_call *call)
{
    const struct gateway_config *config = gateway_config_of(call->gateway);
    uint64_t every_ms = param_live(*config->ping_ms);
    struct slow_reply *r = xcalloc(1, sizeof *r);
    r->req = req;
    r->resource = xstrdup(http_path(req));
    r->request_id = xstrdup(http_request_id(req));
    r->waiting = BUF_INIT;
    atomic_init(&r->refs, 1);
    pthread_mutex_init(&r->lock, NULL);
    r->timer = loop_timer_new(config->loop, it_takes_long, r);
    loop_timer_start(r->timer, every_ms, every_ms);
    return r;
}

static void reply_whole(struct slow_reply *r, const struct s3_failure *why,
                        const struct buf *document)
{
    if (why->error != S3_OK)
        gateway_fail(r->req, why);
    else
        gateway_reply_xml(r->req, document);
}

/* The document's declaration was sent. */
static void reply_rest(struct slow_reply *r, const struct s3_failure *why,
                       const struct buf *document)
{
    _cleanup_buf_ struct buf text = BUF_INIT;
    if (why->error != S3_OK)
        s3_error_document(why, r->resource, r->request_id, &text);
    else
        buf_append(&text, document->data, document->len);
    add(r, buf_str(&text) + strlen(XML_DECLARATION), true);
}

void slow_reply_end(struct slow_reply *r, const struct s3_failure *why, const struct buf *document)
{
    loop_timer_free(r->timer);
    if (r->has_begun)
        reply_rest(r, why, document);
    else
        reply_whole(r, why, document);
    unref(r);
}
