#include "gateway/collect.h"

#include "common/arena.h"
#include "common/buf.h"
#include "common/checksum.h"
#include "gateway/body.h"
#include "gateway/reply.h"
#include "s3/sum.h"

struct collecting {
    const struct gateway_call *call;
    size_t max;
    collected_fn *fn;
    struct body *body; /* NULL: it has been replied to */
    struct buf whole;
};

static void collecting_done(void *arg)
{
    struct collecting *c = arg;
    body_free(c->body);
    buf_done(&c->whole);
}

static void refuse(struct http_request *req, struct collecting *c, const struct s3_failure *why)
{
    body_free(c->body);
    c->body = NULL;
    gateway_fail(req, why);
}

/* All of it is taken, also what comes after a refusal. */
static size_t take(struct http_request *req, void *ctx, const char *data, size_t len)
{
    struct collecting *c = ctx;
    struct s3_failure why;
    const char *at = data, *piece;
    size_t left = len, count = 0;
    do {
        if (c->body == NULL)
            return len;
        enum s3_error e = body_next(c->body, &at, &left, &piece, &count, &why);
        if (e == S3_OK && c->whole.len + count > c->max)
            e = s3_fail(&why, S3_ENTITY_TOO_LARGE, "The document is longer than %zu bytes", c->max);
        if (e != S3_OK)
            refuse(req, c, &why);
        else
            buf_append(&c->whole, piece, count);
    } while (count > 0);
    return len;
}

/* The body's other digests are those that body_end() compares. */
static enum s3_error check_md5(const struct collecting *c, struct s3_failure *why)
{
    struct checksum_value wanted, found;
    enum s3_error e = s3_sum_content_md5(&c->call->head, &wanted, why);
    if (e != S3_OK || wanted.type == CHECKSUM_NONE)
        return e;
    _cleanup_(checksum_freep)
    struct checksum *sum = checksum_new(CHECKSUM_MD5);
    checksum_update(sum, c->whole.data, c->whole.len);
    checksum_final(sum, &found);
    return checksum_equal(&wanted, &found) ? S3_OK : s3_fail(why, S3_BAD_DIGEST, NULL);
}

static void end(struct http_request *req, void *ctx)
{
    struct collecting *c = ctx;
    struct s3_failure why;
    if (c->body == NULL)
        return;
    if (body_end(c->body, &why) != S3_OK || check_md5(c, &why) != S3_OK)
        refuse(req, c, &why);
    else
        c->fn(req, c->call, buf_str(&c->whole), c->whole.len);
}

static void cut(struct http_request *req, void *ctx)
{
    (void)req;
    (void)ctx;
}

void gateway_collect(struct http_request *req, const struct gateway_call *call, size_t max,
                     collected_fn *fn)
{
    static const struct http_body_ops ops = {.data = take, .end = end, .cut = cut};
    struct collecting *c = arena_alloc(http_arena(req), sizeof *c);
    struct s3_failure why;
    int64_t length = http_content_length(req);
    *c = (struct collecting){.call = call, .max = max, .fn = fn, .whole = BUF_INIT};
    if (body_new(call, length, &c->body, &why) != S3_OK) {
        gateway_fail(req, &why);
        return;
    }
    http_on_end(req, collecting_done, c);
    http_take_body(req, &ops, c);
}
