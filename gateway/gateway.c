#include "gateway/gateway.h"

#include <openssl/crypto.h>
#include <stdatomic.h>
#include <string.h>

#include "access/guard.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/param.h"
#include "gateway/reply.h"
#include "gateway/signing_keys.h"
#include "s3/headers.h"

enum { DOMAINS_MAX = 16, REGION_MAX = 63 };

struct gateway {
    struct gateway_config config;
    atomic_uint forwards; /* under way */
    char *region;
    char *domains; /* its commas are NULs */
    const char *domain[DOMAINS_MAX];
    size_t domain_count;
    struct signing_keys *keys;
};

/* --- the beginning ---------------------------------------------------------------------------- */

static bool is_name(const char *text, size_t most)
{
    size_t len = strlen(text);
    return len > 0 && len <= most && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789.-") == len;
}

static int split_domains(struct gateway *g, struct error *err)
{
    char *rest = g->domains[0] != '\0' ? g->domains : NULL;
    for (char *one; (one = strsep(&rest, ",")) != NULL;) {
        if (!is_name(one, 255) || g->domain_count == DOMAINS_MAX)
            return error_set(err, E_INVALID,
                             "--s3-domains: '%.64s' is no name in small letters, or one too many "
                             "(%d at most)",
                             one, DOMAINS_MAX);
        g->domain[g->domain_count++] = one;
    }
    return 0;
}

int gateway_new(const struct gateway_config *config, struct gateway **out, struct error *err)
{
    *out = NULL;
    if (!is_name(config->region, REGION_MAX))
        return error_set(err, E_INVALID, "--s3-region: '%.64s' is no region in small letters",
                         config->region);
    struct gateway *g = xcalloc(1, sizeof *g);
    g->config = *config;
    g->config.region = g->region = xstrdup(config->region);
    g->config.domains = g->domains = xstrdup(config->domains);
    g->keys = signing_keys_new();
    int code = split_domains(g, err);
    if (code != 0)
        gateway_free(g);
    else
        *out = g;
    return code;
}

void gateway_free(struct gateway *g)
{
    if (g == NULL)
        return;
    signing_keys_free(g->keys);
    free(g->domains);
    free(g->region);
    free(g);
}

const char *gateway_region(const struct gateway *g)
{
    return g->region;
}

const struct gateway_config *gateway_config_of(const struct gateway *g)
{
    return &g->config;
}

bool gateway_enter_forward(struct gateway *g)
{
    if (atomic_fetch_add(&g->forwards, 1) < param_live(*g->config.forwards_max))
        return true;
    gateway_leave_forward(g);
    return false;
}

void gateway_leave_forward(struct gateway *g)
{
    atomic_fetch_sub(&g->forwards, 1);
}

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
    bool reads = strcmp(op->method, "GET") == 0 || strcmp(op->method, "HEAD") == 0;
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

static enum s3_error admit(struct gateway *g, struct http_request *req, struct gateway_call *call,
                           struct s3_failure *why)
{
    enum s3_error e =
        s3_verify_read(&call->head, &call->s3.query, http_arena(req), &call->credential, why);
    if (e == S3_OK && g->config.asks_rights && call->credential.signing != S3_SIGNED_NOT)
        e = check_signature(g, req, call, why);
    if (e == S3_OK && g->config.asks_rights)
        e = check_right(req, call, why);
    return e;
}

/* --- the handler ------------------------------------------------------------------------------ */

static const struct gateway_handler *find_handler(const struct gateway *g, enum s3_op_id op)
{
    const struct gateway_handler *h = g->config.handlers;
    while (h->begin != NULL && h->op != op)
        h++;
    return h;
}

static enum s3_error prepare(struct gateway *g, struct http_request *req, struct gateway_call *call,
                             struct s3_failure *why)
{
    enum s3_error e;
    if ((e = find_op(g, req, call, why)) != S3_OK || (e = admit(g, req, call, why)) != S3_OK ||
        (e = s3_headers_check(&call->head, why)) != S3_OK)
        return e;
    return call->op->answer == S3_OK ? S3_OK : s3_fail(why, call->op->answer, NULL);
}

void gateway_begin(struct gateway *g, struct http_request *req)
{
    struct gateway_call *call = arena_alloc(http_arena(req), sizeof *call);
    call->gateway = g;
    struct s3_failure why = {.error = S3_OK};
    http_set_error_form(req, &gateway_error_form);
    http_reply_constant(req, gateway_error_form.id_header, http_request_id(req));
    if (prepare(g, req, call, &why) != S3_OK) {
        gateway_fail(req, &why);
        return;
    }
    const struct gateway_handler *handler = find_handler(g, call->s3.op);
    if (handler->begin != NULL) {
        handler->begin(req, call);
        return;
    }
    s3_fail(&why, S3_NOT_IMPLEMENTED, "This server does not do %s", call->op->name);
    gateway_fail(req, &why);
}
