#include "gateway/entry.h"

#include <openssl/crypto.h>
#include <string.h>

#include "access/guard.h"
#include "cluster/documents/state.h"
#include "cluster/documents/state_holder.h"
#include "common/clock.h"
#include "gateway/cors.h"
#include "gateway/gateway_parts.h"
#include "gateway/proxy_call.h"
#include "gateway/reply.h"
#include "gateway/signing_keys.h"
#include "s3/copy_source.h"
#include "s3/headers.h"

/* --- the head --------------------------------------------------------------------------------- */

struct fields {
    struct s3_field *to; /* NULL: they are counted */
    size_t count;
};

static void take_header(void *ctx, const char *name, const char *value)
{
    struct fields *f = ctx;
    if (f->to != NULL)
        f->to[f->count] = (struct s3_field){name, value};
    f->count++;
}

static void read_head(struct http_request *req, struct s3_request *head)
{
    struct fields counted = {0}, taken = {0};
    http_each_header(req, take_header, &counted);
    taken.to = arena_alloc(http_arena(req), (counted.count + 1) * sizeof taken.to[0]);
    http_each_header(req, take_header, &taken);
    *head = (struct s3_request){.method = http_method_name(http_method(req)),
                                .path = http_path(req),
                                .query = http_raw_query(req),
                                .headers = taken.to,
                                .header_count = taken.count};
}

/* A DELETE of an object is told as a change, a PUT is not: as of the native calls. */
static bool is_change(const struct s3_op *op)
{
    bool reads = strcmp(op->method, "GET") == 0 || strcmp(op->method, "HEAD") == 0 ||
                 op->right == RIGHT_NONE;
    return op->right == RIGHT_DELETE || (!reads && op->level == S3_LEVEL_BUCKET);
}

static void set_subject(struct http_request *req, const struct gateway_call *call)
{
    const struct s3_op *op = call->op;
    const struct http_subject subject = {
        .op = op->name,
        .bucket = op->level != S3_LEVEL_SERVICE ? call->s3.bucket : NULL,
        .object = op->level == S3_LEVEL_OBJECT ? call->s3.key : NULL,
        .changes = is_change(op)};
    http_set_subject(req, &subject);
}

static enum s3_error find_op(const struct gateway *g, struct http_request *req,
                             struct gateway_call *call, struct s3_failure *why)
{
    const struct s3_place place = {.prefix = http_listener(req) == NET_S3 ? "" : "/s3",
                                   .domains = g->domain,
                                   .domain_count = g->domain_count};
    read_head(req, &call->head);
    enum s3_error e = s3_op_find(&call->head, &place, http_arena(req), &call->s3, why);
    if (e == S3_OK)
        call->op = s3_op(call->s3.op);
    if (e == S3_OK)
        set_subject(req, call);
    return e;
}

/* --- who asks --------------------------------------------------------------------------------- */

static enum s3_error find_signing_key(struct gateway *g, struct http_request *req,
                                      struct gateway_call *call, struct s3_failure *why)
{
    const struct s3_credential *c = &call->credential;
    const char *sealed = guard_find_key(req, c->access_key);
    char secret[SECRET_CHARS + 1];
    struct error err = ERROR_INIT;
    if (sealed == NULL)
        return s3_fail(why, S3_INVALID_ACCESS_KEY, NULL);
    if (signing_keys_find(g->keys, c->access_key, sealed, c->day, call->signing_key))
        return S3_OK;
    if (guard_secret(req, c->access_key, secret, &err) != 0)
        return s3_fail(why, s3_error_of(err.code), "%s", err.message);
    sigv4_signing_key(secret, c->time, g->region, "s3", call->signing_key);
    OPENSSL_cleanse(secret, sizeof secret);
    signing_keys_put(g->keys, c->access_key, sealed, c->day, call->signing_key);
    return S3_OK;
}

static enum s3_error check_signature(struct gateway *g, struct http_request *req,
                                     struct gateway_call *call, struct s3_failure *why)
{
    const struct s3_query *query = &call->s3.query;
    enum s3_error e;
    if ((e = s3_verify_scope(&call->credential, g->region, clock_wall_ms() / 1000, why)) != S3_OK ||
        (e = find_signing_key(g, req, call, why)) != S3_OK ||
        (e = s3_verify_signature(&call->head, query, &call->credential, call->signing_key,
                                 http_arena(req), why)) != S3_OK)
        return e;
    guard_set_key(req, call->credential.access_key);
    call->has_key = true;
    return S3_OK;
}

/* --- may they --------------------------------------------------------------------------------- */

static bool is_list(enum s3_op_id op)
{
    return op == S3_OP_ListObjects || op == S3_OP_ListObjectsV2 || op == S3_OP_ListObjectVersions ||
           op == S3_OP_ListMultipartUploads;
}

/* A list is for the keys with the prefix that it asks for. */
static const char *key_of(const struct gateway_call *call)
{
    if (call->op->level == S3_LEVEL_OBJECT)
        return call->s3.key;
    if (!is_list(call->s3.op))
        return NULL;
    const char *prefix = s3_query_get(&call->s3.query, "prefix");
    return prefix != NULL ? prefix : "";
}

static enum s3_error check_right(struct http_request *req, const struct gateway_call *call,
                                 struct s3_failure *why)
{
    struct error err = ERROR_INIT;
    enum right right = call->op->right;
    bool of_cluster = right_is_of_cluster(right) || call->op->level == S3_LEVEL_SERVICE;
    const char *bucket = of_cluster ? NULL : call->s3.bucket;
    if (guard_open(req, right, bucket, of_cluster ? NULL : key_of(call), &err) == 0)
        return S3_OK;
    return s3_fail(why, s3_error_of(err.code), "%s", err.message);
}

static enum s3_error not_done(const struct gateway_call *call, struct s3_failure *why)
{
    return s3_fail(why, S3_NOT_IMPLEMENTED,
                   "This server does not do %s; docs/reference/s3.md lists what it does",
                   call->op->name);
}

static enum s3_error admit(struct gateway *g, struct http_request *req,
                           const struct gateway_call *call, struct s3_failure *why)
{
    enum s3_error e =
        g->config.asks_rights ? check_right(req, call, why) : cors_check_page(req, call, why);
    if (e != S3_OK || (e = s3_headers_check(&call->head, why)) != S3_OK)
        return e;
    if (call->op->answer == S3_NOT_IMPLEMENTED)
        return not_done(call, why);
    return call->op->answer == S3_OK ? S3_OK : s3_fail(why, call->op->answer, NULL);
}

/* --- the handler ------------------------------------------------------------------------------ */

static const struct gateway_handler *find_handler(const struct gateway *g, enum s3_op_id op)
{
    const struct gateway_handler *h = g->config.handlers;
    while (h->begin != NULL && h->op != op)
        h++;
    return h;
}

static void go_on(struct gateway *g, struct http_request *req, const struct gateway_call *call)
{
    struct s3_failure why;
    const struct gateway_handler *handler = find_handler(g, call->s3.op);
    enum s3_error e = admit(g, req, call, &why);
    if (e == S3_OK && handler->begin == NULL)
        e = not_done(call, &why);
    if (e != S3_OK)
        gateway_fail(req, &why);
    else
        handler->begin(req, call);
}

/* --- a bucket that this node has not heard of ------------------------------------------------- */

struct renewal {
    struct http_request *req;
    const struct gateway_call *call;
    bool is_own_bucket; /* which was unknown; else the source of a copy was */
};

static void renewed(void *arg)
{
    const struct renewal *r = arg;
    const char *key = r->call->has_key ? r->call->credential.access_key : NULL;
    struct s3_failure why;
    guard_renew(r->req);
    if (r->is_own_bucket)
        cors_add_headers(r->req, r->call);
    if (key != NULL && guard_find_key(r->req, key) == NULL) {
        s3_fail(&why, S3_INVALID_ACCESS_KEY, NULL);
        gateway_fail(r->req, &why);
        return;
    }
    if (key != NULL)
        guard_set_key(r->req, key);
    go_on(r->call->gateway, r->req, r->call);
}

static void heard(struct http_request *req, const struct gateway_call *call, void *arg,
                  const struct error *failure, const struct buf *text)
{
    struct gateway *g = call->gateway;
    struct error err = *failure;
    const char *state = NULL;
    if (err.code == E_BUCKET_NOT_FOUND)
        go_on(g, req, call);
    else if (err.code != 0 || proxy_call_state(req, text, &state, &err) != 0)
        http_reply_error(req, &err);
    else
        g->config.renew(g->config.ctx, state, renewed, arg);
}

static void ask_proxy(struct http_request *req, const struct gateway_call *call, const char *bucket)
{
    struct renewal *r = arena_alloc(http_arena(req), sizeof *r);
    const struct proxy_call spec = {
        .method = HTTP_GET, .bucket = bucket, .rest = "/state", .done = heard, .arg = r};
    *r = (struct renewal){req, call, strcmp(bucket, call->s3.bucket) == 0};
    proxy_call_start(req, call, &spec);
}

static bool is_copy(const struct gateway_call *call)
{
    return call->s3.op == S3_OP_CopyObject || call->s3.op == S3_OP_UploadPartCopy;
}

/* A request with a body cannot wait here: its body must be taken at once (net/http/handler.h). */
static bool may_wait(const struct http_request *req, const struct gateway_call *call)
{
    enum http_method m = http_method(req);
    bool has_none = (is_copy(call) || call->s3.op == S3_OP_CreateMultipartUpload) &&
                    http_content_length(req) == 0;
    return m == HTTP_GET || m == HTTP_HEAD || m == HTTP_DELETE || m == HTTP_OPTIONS || has_none;
}

static bool is_unknown(const struct cluster_state *s, const char *bucket)
{
    return bucket != NULL && *bucket != '\0' && bmd_bucket(&s->bmd, bucket) == NULL;
}

/* The bucket that is copied from; NULL: nothing is copied, or the handler says what is wrong. */
static const char *source_bucket(struct http_request *req, const struct gateway_call *call)
{
    struct s3_copy_source source;
    return is_copy(call) &&
                   s3_copy_source_read(&call->head, http_arena(req), &source, NULL) == S3_OK
               ? source.bucket
               : NULL;
}

/* Its owner and grants are in the state, too: they are needed before the right is decided.  NULL:
 * the request need not wait. */
static const char *unknown_bucket(const struct gateway *g, struct http_request *req,
                                  const struct gateway_call *call)
{
    if (g->config.renew == NULL || !may_wait(req, call))
        return NULL;
    _cleanup_state_ const struct cluster_state *s = state_current(g->config.state);
    const char *source = source_bucket(req, call);
    return is_unknown(s, call->s3.bucket) ? call->s3.bucket : is_unknown(s, source) ? source : NULL;
}

/* --- the beginning of a request --------------------------------------------------------------- */

static enum s3_error identify(struct gateway *g, struct http_request *req,
                              struct gateway_call *call, struct s3_failure *why)
{
    enum s3_error e = find_op(g, req, call, why);
    if (e != S3_OK)
        return e;
    cors_add_headers(req, call);
    /* The query of a preflight may have the signature of the request that it asks about. */
    if (call->op->right != RIGHT_NONE)
        e = s3_verify_read(&call->head, &call->s3.query, http_arena(req), &call->credential, why);
    if (e == S3_OK && g->config.asks_rights && call->credential.signing != S3_SIGNED_NOT)
        e = check_signature(g, req, call, why);
    return e;
}

void gateway_begin(struct gateway *g, struct http_request *req)
{
    struct gateway_call *call = arena_alloc(http_arena(req), sizeof *call);
    struct s3_failure why;
    call->gateway = g;
    http_set_error_form(req, &gateway_error_form);
    http_reply_constant(req, gateway_error_form.id_header, http_request_id(req));
    if (identify(g, req, call, &why) != S3_OK) {
        gateway_fail(req, &why);
        return;
    }
    const char *unknown = unknown_bucket(g, req, call);
    if (unknown != NULL)
        ask_proxy(req, call, unknown);
    else
        go_on(g, req, call);
}
