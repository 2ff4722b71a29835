#include "gateway/cors.h"

#include <inttypes.h>
#include <string.h>

#include "cluster/documents/state.h"
#include "cluster/documents/state_holder.h"
#include "common/arena.h"
#include "gateway/reply.h"
#include "s3/cors.h"

#define ALLOW "Access-Control-Allow-"
#define ASK "Access-Control-Request-"

/* NULL: no rule of the bucket allows it.  Texts are the request's. */
static const struct s3_cors_rule *find_rule(struct http_request *req,
                                            const struct gateway_call *call, const char *origin,
                                            const char *method, const char *headers)
{
    _cleanup_state_ const struct cluster_state *s =
        state_current(gateway_config_of(call->gateway)->state);
    const struct bucket *b = bmd_bucket(&s->bmd, call->s3.bucket);
    const char *text = b != NULL ? b->texts.text[BUCKET_CORS] : NULL;
    struct s3_cors cors;
    struct s3_failure why;
    if (text == NULL)
        return NULL;
    const char *own = arena_strdup(http_arena(req), text);
    /* It was parsed before it was stored; what a later release wrote may allow nothing here. */
    if (s3_cors_parse(own, strlen(own), http_arena(req), &cors, &why) != S3_OK)
        return NULL;
    return s3_cors_match(&cors, origin, method, headers);
}

static void add_texts(struct http_request *req, const char *name, const struct s3_texts *texts)
{
    _cleanup_buf_ struct buf value = BUF_INIT;
    for (size_t i = 0; i < texts->count; i++)
        buf_printf(&value, "%s%s", i > 0 ? ", " : "", texts->texts[i]);
    if (texts->count > 0)
        http_reply_header(req, name, buf_str(&value));
}

static void add_rule(struct http_request *req, const struct s3_cors_rule *rule, const char *origin)
{
    bool is_public = s3_cors_is_public(rule);
    http_reply_header(req, ALLOW "Origin", is_public ? "*" : origin);
    if (!is_public)
        http_reply_constant(req, ALLOW "Credentials", "true");
    add_texts(req, ALLOW "Methods", &rule->methods);
    add_texts(req, "Access-Control-Expose-Headers", &rule->exposed);
    http_reply_constant(req, "Vary", "Origin, " ASK "Headers, " ASK "Method");
}

static bool is_preflight(const struct gateway_call *call)
{
    return call->s3.op == S3_OP_PreflightBucket || call->s3.op == S3_OP_PreflightObject;
}

void cors_add_headers(struct http_request *req, const struct gateway_call *call)
{
    const char *origin = s3_header(&call->head, "Origin");
    if (origin == NULL || is_preflight(call))
        return;
    const struct s3_cors_rule *rule = find_rule(req, call, origin, call->head.method, NULL);
    if (rule != NULL)
        add_rule(req, rule, origin);
}

enum s3_error cors_check_page(struct http_request *req, const struct gateway_call *call,
                              struct s3_failure *why)
{
    const char *origin = s3_header(&call->head, "Origin");
    if (!http_is_foreign(req) || is_preflight(call))
        return S3_OK;
    if (origin != NULL && find_rule(req, call, origin, call->head.method, NULL) != NULL)
        return S3_OK;
    return s3_fail(why, S3_CORS_REFUSED, NULL);
}

static void allow(struct http_request *req, const struct s3_cors_rule *rule, const char *origin,
                  const char *headers)
{
    add_rule(req, rule, origin);
    if (headers != NULL)
        http_reply_header(req, ALLOW "Headers", headers);
    if (rule->max_age_s >= 0)
        http_reply_header(req, "Access-Control-Max-Age",
                          arena_printf(http_arena(req), "%" PRId64, rule->max_age_s));
    http_reply_empty(req, 200);
}

void s3_preflight(struct http_request *req, const struct gateway_call *call)
{
    const char *origin = s3_header(&call->head, "Origin");
    const char *method = s3_header(&call->head, ASK "Method");
    const char *headers = s3_header(&call->head, ASK "Headers");
    struct s3_failure why;
    if (origin == NULL || method == NULL) {
        s3_fail(&why, S3_BAD_REQUEST, "A preflight has the headers Origin and " ASK "Method");
        gateway_fail(req, &why);
        return;
    }
    const struct s3_cors_rule *rule =
        find_rule(req, call, origin, method, headers != NULL ? headers : "");
    if (rule != NULL) {
        allow(req, rule, origin, headers);
        return;
    }
    s3_fail(&why, S3_CORS_REFUSED, NULL);
    gateway_fail(req, &why);
}
