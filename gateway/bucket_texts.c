#include "gateway/bucket_texts.h"

#include <assert.h>

#include "cluster/documents/state.h"
#include "cluster/documents/state_holder.h"
#include "common/arena.h"
#include "common/base64url.h"
#include "common/rng.h"
#include "gateway/collect.h"
#include "gateway/proxy_call.h"
#include "gateway/reply.h"
#include "s3/cors.h"
#include "s3/lifecycle.h"
#include "s3/tags.h"

enum { RULE_ID_BYTES = 18 };
enum { BODY_MAX = 64 * 1024 }; /* a document with spaces; what is kept has none */

/* --- the kinds -------------------------------------------------------------------------------- */

/* The document as it is kept.  `b`: the bucket, or NULL where this node has not heard of it. */
typedef enum s3_error rewrite_fn(const struct bucket *b, const char *body, size_t len,
                                 struct arena *arena, struct buf *out, struct s3_failure *why);

static enum s3_error rewrite_tags(const struct bucket *b, const char *body, size_t len,
                                  struct arena *arena, struct buf *out, struct s3_failure *why)
{
    (void)b; /* any bucket may have one */
    struct s3_tags tags;
    enum s3_error e = s3_tags_parse(body, len, S3_TAGS_MAX, arena, &tags, why);
    if (e == S3_OK)
        s3_tags_document(&tags, out);
    return e;
}

static enum s3_error rewrite_cors(const struct bucket *b, const char *body, size_t len,
                                  struct arena *arena, struct buf *out, struct s3_failure *why)
{
    (void)b; /* any bucket may have one */
    struct s3_cors cors;
    enum s3_error e = s3_cors_parse(body, len, arena, &cors, why);
    if (e == S3_OK)
        s3_cors_document(&cors, out);
    return e;
}

/* As of AWS, each rule has an id, by which x-amz-expiration names it. */
static void name_rules(struct s3_lifecycle *lifecycle, struct arena *arena)
{
    unsigned char bytes[RULE_ID_BYTES];
    char text[BASE64URL_CHARS(RULE_ID_BYTES)];
    for (size_t i = 0; i < lifecycle->count; i++) {
        struct s3_lifecycle_rule *rule = &lifecycle->rules[i];
        if (rule->id != NULL && *rule->id != '\0')
            continue;
        random_bytes(bytes, sizeof bytes);
        rule->id = arena_strndup(arena, text, base64url_encode(bytes, sizeof bytes, text));
    }
}

static enum s3_error rewrite_lifecycle(const struct bucket *b, const char *body, size_t len,
                                       struct arena *arena, struct buf *out, struct s3_failure *why)
{
    struct s3_lifecycle lifecycle;
    enum s3_error e = s3_lifecycle_parse(body, len, arena, &lifecycle, why);
    if (e == S3_OK && b != NULL && b->props.backend != NULL && s3_lifecycle_expires(&lifecycle))
        e = s3_fail(why, S3_NOT_IMPLEMENTED,
                    "The bucket has a backend: set rules that expire objects there");
    if (e != S3_OK)
        return e;
    name_rules(&lifecycle, arena);
    s3_lifecycle_document(&lifecycle, out);
    return S3_OK;
}

struct kind {
    enum s3_op_id put, get, remove;
    rewrite_fn *rewrite;
    int put_status;
    enum s3_error none; /* a bucket without it */
};

static const struct kind kinds[BUCKET_TEXTS] = {
    [BUCKET_TAGS] = {S3_OP_PutBucketTagging, S3_OP_GetBucketTagging, S3_OP_DeleteBucketTagging,
                     rewrite_tags, 204, S3_NO_TAG_SET},
    [BUCKET_CORS] = {S3_OP_PutBucketCors, S3_OP_GetBucketCors, S3_OP_DeleteBucketCors, rewrite_cors,
                     200, S3_NO_CORS},
    [BUCKET_LIFECYCLE] = {S3_OP_PutBucketLifecycleConfiguration,
                          S3_OP_GetBucketLifecycleConfiguration, S3_OP_DeleteBucketLifecycle,
                          rewrite_lifecycle, 200, S3_NO_LIFECYCLE},
};

static enum bucket_text text_of(enum s3_op_id op)
{
    size_t i = 0;
    while (i < BUCKET_TEXTS && kinds[i].put != op && kinds[i].get != op && kinds[i].remove != op)
        i++;
    assert(i < BUCKET_TEXTS); /* the handlers have rows for these operations alone */
    return (enum bucket_text)i;
}

/* --- reading ---------------------------------------------------------------------------------- */

static void reply_text(struct http_request *req, const struct gateway_call *call)
{
    _cleanup_state_ const struct cluster_state *s =
        state_current(gateway_config_of(call->gateway)->state);
    const struct bucket *b = bmd_bucket(&s->bmd, call->s3.bucket);
    enum bucket_text which = text_of(call->s3.op);
    struct s3_failure why;
    if (b != NULL && b->texts.text[which] != NULL) {
        _cleanup_buf_ struct buf document = BUF_INIT;
        buf_puts(&document, b->texts.text[which]);
        gateway_reply_xml(req, &document);
        return;
    }
    s3_fail(&why, b == NULL ? S3_NO_BUCKET : kinds[which].none, NULL);
    gateway_fail(req, &why);
}

static void heard(struct http_request *req, const struct gateway_call *call, void *arg,
                  const struct error *err, const struct buf *text)
{
    (void)arg;
    if (err->code != 0)
        http_reply_error(req, err);
    else
        proxy_call_when_known(req, call, text, reply_text);
}

/* A node that hears of changes late asks for the newest state first. */
void s3_get_bucket_text(struct http_request *req, const struct gateway_call *call)
{
    const struct proxy_call look = {
        .method = HTTP_GET, .bucket = call->s3.bucket, .rest = "/state", .done = heard};
    if (gateway_config_of(call->gateway)->renew == NULL)
        reply_text(req, call);
    else
        proxy_call_start(req, call, &look);
}

/* --- changing --------------------------------------------------------------------------------- */

static void reply_changed(struct http_request *req, const struct gateway_call *call)
{
    const struct kind *kind = &kinds[text_of(call->s3.op)];
    http_reply_empty(req, call->s3.op == kind->put ? kind->put_status : 204);
}

static void stored(struct http_request *req, const struct gateway_call *call, void *arg,
                   const struct error *err, const struct buf *text)
{
    (void)arg;
    if (err->code != 0)
        http_reply_error(req, err);
    else
        proxy_call_when_known(req, call, text, reply_changed);
}

/* `document` NULL: the bucket has none any more. */
static void store(struct http_request *req, const struct gateway_call *call, struct buf *document)
{
    struct arena *a = http_arena(req);
    const struct proxy_call spec = {
        .method = document != NULL ? HTTP_PUT : HTTP_DELETE,
        .bucket = call->s3.bucket,
        .rest = arena_printf(a, "/texts/%s", bucket_text_name(text_of(call->s3.op))),
        .body = document != NULL ? arena_strdup(a, buf_str(document)) : NULL,
        .done = stored};
    proxy_call_start(req, call, &spec);
}

static enum s3_error rewrite(struct http_request *req, const struct gateway_call *call,
                             const char *data, size_t len, struct buf *out, struct s3_failure *why)
{
    _cleanup_state_ const struct cluster_state *s =
        state_current(gateway_config_of(call->gateway)->state);
    const struct bucket *b = bmd_bucket(&s->bmd, call->s3.bucket);
    enum s3_error e = kinds[text_of(call->s3.op)].rewrite(b, data, len, http_arena(req), out, why);
    if (e == S3_OK && out->len > BUCKET_TEXT_MAX)
        e = s3_fail(why, S3_ENTITY_TOO_LARGE, "The document has more than %d bytes",
                    BUCKET_TEXT_MAX);
    return e;
}

static void put(struct http_request *req, const struct gateway_call *call, const char *data,
                size_t len)
{
    struct s3_failure why;
    _cleanup_buf_ struct buf document = BUF_INIT;
    if (rewrite(req, call, data, len, &document, &why) != S3_OK)
        gateway_fail(req, &why);
    else
        store(req, call, &document);
}

void s3_put_bucket_text(struct http_request *req, const struct gateway_call *call)
{
    gateway_collect(req, call, BODY_MAX, put);
}

void s3_delete_bucket_text(struct http_request *req, const struct gateway_call *call)
{
    store(req, call, NULL);
}
