#include "gateway/local.h"

#include <string.h>

#include "cluster/documents/state_holder.h"
#include "cluster/placement/owners.h"
#include "gateway/body.h"
#include "gateway/reply.h"

struct local {
    const struct gateway_call *s3; /* the request's */
    struct forward_plan plan;
    struct http_recast as;
    struct http_parameter path[3];
    const struct http_body_ops *target; /* what takes the body … */
    void *target_ctx;                   /* … with this */
};

bool local_takes(const struct gateway_call *call)
{
    const struct gateway_config *config = gateway_config_of(call->gateway);
    struct owners owners;
    if (config->local.id == NULL)
        return false;
    _cleanup_state_ const struct cluster_state *s = state_current(config->state);
    const struct bucket *b = bmd_bucket(&s->bmd, call->s3.bucket);
    return b != NULL && owners_find_acting(s, b, call->s3.key, &owners, NULL) == 0 &&
           strcmp(owners.acting->id, config->local.id) == 0;
}

/* --- the reply -------------------------------------------------------------------------------- */

struct taking {
    struct arena *arena;
    struct target_call_header *first, **end;
};

static void take_header(void *ctx, const char *name, const char *value)
{
    struct taking *t = ctx;
    struct target_call_header *h = arena_alloc(t->arena, sizeof *h);
    *h = (struct target_call_header){.name = name, .value = value};
    *t->end = h;
    t->end = &h->next;
}

/* Are its bytes for the client?  Other operations than GetObject and HeadObject read headers. */
static bool shows_reply(const struct local *l)
{
    return l->plan.method == HTTP_GET || l->s3->s3.op == S3_OP_HeadObject;
}

/* The owners have changed since this target was asked. */
static void send_on(struct http_request *req, const struct local *l, const char *url)
{
    struct forward_plan plan = l->plan;
    struct error err;
    if (plan.body == NULL) {
        forward_to(req, l->s3, &plan, url);
        return;
    }
    error_set(&err, E_NOT_READY, "the owners have changed since the request began; send it again");
    http_reply_error(req, &err);
}

static void replied(struct http_request *req, void *ctx, const struct error *failure)
{
    const struct local *l = ctx;
    struct forward_reply r = {.err = failure != NULL ? *failure : ERROR_INIT,
                              .status = http_reply_status(req),
                              .length = http_reply_length(req),
                              .body = l->plan.body};
    struct taking t = {.arena = http_arena(req), .end = &t.first};
    http_reply_take_headers(req, take_header, &t);
    r.headers = t.first;
    const char *location = target_call_header(r.headers, "Location");
    bool has_bytes = shows_reply(l) && failure == NULL && r.status >= 200 && r.status <= 299;
    if (!has_bytes)
        http_reply_drop(req);
    if (failure == NULL && r.status == 307 && location != NULL)
        send_on(req, l, location);
    else
        l->plan.reply(req, l->s3, &r);
}

/* --- the body --------------------------------------------------------------------------------- */

struct passing {
    struct http_request *req;
    const struct local *local;
};

static ssize_t put_bytes(void *ctx, const char *data, size_t len)
{
    const struct passing *p = ctx;
    size_t taken = p->local->target->data(p->req, p->local->target_ctx, data, len);
    return taken > 0 ? (ssize_t)taken : BODY_SINK_FULL;
}

static void refuse_body(struct http_request *req, const struct s3_failure *why)
{
    if (!http_refuse_body(req))
        return;
    http_reply_drop(req);
    gateway_fail(req, why);
}

static size_t body_data(struct http_request *req, void *ctx, const char *data, size_t len)
{
    const struct local *l = ctx;
    struct passing p = {.req = req, .local = l};
    const struct body_sink to = {.put = put_bytes, .ctx = &p};
    struct s3_failure why;
    size_t taken;
    if (body_pass(l->plan.body, &to, data, len, &taken, &why) == BODY_WRONG)
        refuse_body(req, &why);
    return taken;
}

static void body_over(struct http_request *req, void *ctx)
{
    const struct local *l = ctx;
    struct s3_failure why;
    if (body_end(l->plan.body, &why) == S3_OK)
        l->target->end(req, l->target_ctx);
    else
        refuse_body(req, &why);
}

static void body_cut(struct http_request *req, void *ctx)
{
    const struct local *l = ctx;
    l->target->cut(req, l->target_ctx);
}

static void body_taken(void *ctx, const struct http_body_ops *target, void *target_ctx)
{
    struct local *l = ctx;
    l->target = target;
    l->target_ctx = target_ctx;
}

static void free_body(void *arg)
{
    body_free(arg);
}

/* --- the start -------------------------------------------------------------------------------- */

static void (*begin_of(const struct gateway_local *target,
                       enum http_method method))(struct http_request *)
{
    return method == HTTP_PUT      ? target->write
           : method == HTTP_DELETE ? target->remove
                                   : target->read;
}

void local_start(struct http_request *req, const struct gateway_call *call,
                 const struct forward_plan *plan)
{
    static const struct http_body_ops ops = {.data = body_data, .end = body_over, .cut = body_cut};
    struct local *l = arena_alloc(http_arena(req), sizeof *l);
    *l = (struct local){
        .s3 = call, .plan = *plan, .path = {{"bucket", call->s3.bucket}, {"object", call->s3.key}}};
    l->as = (struct http_recast){
        .begin = begin_of(&gateway_config_of(call->gateway)->local, plan->method),
        .method = plan->method,
        .path = l->path,
        .headers = plan->headers,
        .replied = replied,
        .ctx = l};
    if (plan->body != NULL) {
        http_on_end(req, free_body, plan->body);
        l->as.content_length = (int64_t)body_length(plan->body);
        l->as.body = &ops;
        l->as.takes = body_taken;
    }
    http_recast(req, &l->as);
}

void local_or_forward(struct http_request *req, const struct gateway_call *call,
                      const struct forward_plan *plan)
{
    if (local_takes(call))
        local_start(req, call, plan);
    else
        forward_start(req, call, plan);
}
