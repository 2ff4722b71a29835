#include "gateway/uploads/upload_call.h"

#include <string.h>

#include "access/guard.h"
#include "access/redirect_proof.h"
#include "cluster/documents/state_holder.h"
#include "cluster/members/location.h"
#include "cluster/placement/owners.h"
#include "cluster/placement/upload_node.h"
#include "common/arena.h"
#include "common/mem.h"
#include "gateway/target_call.h"
#include "gateway/uploads/upload_watch.h"
#include "net/client/client.h"

enum { REPLY_MAX = 4 << 20 };

struct pending {
    struct gateway *gateway;
    struct upload_call spec; /* of which only done() and arg are there … */
    struct arena *arena;     /* … and what the call is given */
    struct http_call call;
    const char *old_body;
    unsigned hops;
    struct target_call_header *found;
    const char *watched;        /* the upload of a slow call, or NULL … */
    struct upload_watch *watch; /* … and what looks after it */
};

/* --- the URL ---------------------------------------------------------------------------------- */

/* What `signs` of the routes says. */
static const char *signed_text(enum http_method method)
{
    switch (method) {
    case HTTP_GET:
        return UPLOAD_SIGNS("GET");
    case HTTP_PUT:
        return UPLOAD_SIGNS("PUT");
    case HTTP_DELETE:
        return UPLOAD_SIGNS("DELETE");
    default:
        return UPLOAD_SIGNS("POST");
    }
}

static int find_node(const struct cluster_state *s, const struct bucket *b, const char *key,
                     const char *upload, const struct node **out, struct error *err)
{
    struct owners owners;
    int code = upload != NULL ? upload_node_find(&s->smap, upload, out, err)
                              : owners_find_acting(s, b, key, &owners, err);
    if (code == 0 && upload == NULL)
        *out = owners.acting;
    if (code == E_INVALID && upload != NULL)
        return error_recode(err, E_NOT_FOUND, "upload '%.80s'", upload);
    return code;
}

static int find_both(const struct cluster_state *s, const struct gateway_call *call,
                     const char *upload, const struct bucket **b, const struct node **n,
                     struct error *err)
{
    *b = bmd_bucket(&s->bmd, call->s3.bucket);
    if (*b == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "bucket '%s' does not exist", call->s3.bucket);
    return find_node(s, *b, call->s3.key, upload, n, err);
}

int upload_call_check(const struct gateway_call *call, const char *upload, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s =
        state_current(gateway_config_of(call->gateway)->state);
    const struct bucket *b = NULL;
    const struct node *n = NULL;
    return find_both(s, call, upload, &b, &n, err);
}

int upload_call_url(struct http_request *req, const struct gateway_call *call,
                    const struct upload_call *spec, struct buf *url, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s =
        state_current(gateway_config_of(call->gateway)->state);
    const char *key = call->s3.key;
    const struct bucket *b = NULL;
    const struct node *n = NULL;
    _cleanup_buf_ struct buf query = BUF_INIT;
    int code = find_both(s, call, spec->upload, &b, &n, err);
    if (code != 0)
        return code;
    if (spec->upload != NULL) /* it is base64url */
        buf_printf(&query, "upload=%s", spec->upload);
    if (spec->query != NULL)
        buf_printf(&query, "&%s", spec->query);
    location_put_upload_target(url, n, s, b, key, buf_str(&query));
    const struct redirect_call proof = {
        .method = signed_text(spec->method), .bucket_id = b->id, .object = key};
    guard_put_call_proof(req, &proof, url);
    return 0;
}

/* --- the call --------------------------------------------------------------------------------- */

static void ended(void *arg, struct http_result *result);

static void take_head(void *arg, const struct http_head *head)
{
    struct pending *p = arg;
    p->found = target_call_headers(p->arena, head);
}

static bool is_given_up(const struct pending *p)
{
    return p->watch != NULL && upload_watch_gave_up(p->watch);
}

static void set_body(struct pending *p, const char *body)
{
    p->call.body = body;
    p->call.body_len = strlen(body);
    p->call.body_stays = true;
}

static void start(struct pending *p)
{
    uint64_t number = http_call_start(gateway_config_of(p->gateway)->client, &p->call, ended, p);
    if (p->watch != NULL)
        upload_watch_follow(p->watch, number);
    else if (p->watched != NULL)
        p->watch = upload_watch_new(p->gateway, p->watched, number);
}

static void pending_free(struct pending *p)
{
    upload_watch_free(p->watch);
    gateway_leave_forward(p->gateway);
    arena_free(p->arena);
    free(p);
}

static void ended(void *arg, struct http_result *result)
{
    struct pending *p = arg;
    struct error err = ERROR_INIT;
    const char *next = target_call_next(result, p->found, p->hops);
    if (next != NULL && !is_given_up(p)) {
        p->hops++;
        p->call.url = next;
        start(p);
        return;
    }
    if (target_call_error(result, p->call.url, &err) == E_INVALID && p->old_body != NULL &&
        !is_given_up(p)) {
        set_body(p, steal(p->old_body));
        start(p);
        return;
    }
    if (err.code != 0 && is_given_up(p))
        error_set(&err, E_IN_DOUBT,
                  "the target of the upload does not answer: the object may be complete, or become "
                  "so later; repeat the request");
    p->spec.done(p->spec.arg, &err, &result->body);
    pending_free(p);
}

static const char *const *copy_lines(struct arena *a, const char *const *lines)
{
    size_t count = 0;
    while (lines != NULL && lines[count] != NULL)
        count++;
    const char **copy = arena_alloc(a, (count + 2) * sizeof copy[0]);
    for (size_t i = 0; i < count; i++)
        copy[i] = arena_strdup(a, lines[i]);
    return copy;
}

static void set_call(struct pending *p, struct http_request *req, const struct upload_call *spec,
                     const char *url)
{
    p->spec = (struct upload_call){.done = spec->done, .arg = spec->arg};
    p->call = (struct http_call){.method = spec->method,
                                 .url = arena_strdup(p->arena, url),
                                 .headers = copy_lines(p->arena, spec->headers),
                                 .reply_max = REPLY_MAX,
                                 .to_public = true,
                                 .once = spec->method != HTTP_GET,
                                 .on_head = take_head,
                                 .request_id = arena_strdup(p->arena, http_request_id(req))};
    if (spec->is_slow) {
        p->call.stall_timeout_ms = HTTP_NO_STALL_TIMEOUT;
        p->watched = arena_strdup(p->arena, spec->upload);
    }
    if (spec->body != NULL)
        set_body(p, arena_strdup(p->arena, spec->body));
    if (spec->old_body != NULL)
        p->old_body = arena_strdup(p->arena, spec->old_body);
}

int upload_call_start(struct http_request *req, const struct gateway_call *call,
                      const struct upload_call *spec, struct error *err)
{
    _cleanup_buf_ struct buf url = BUF_INIT;
    int code = upload_call_url(req, call, spec, &url, err);
    if (code != 0)
        return code;
    if (!gateway_enter_forward(call->gateway))
        return error_set(err, E_OVERLOAD, "s3_forwards_max requests are under way");
    struct pending *p = xcalloc(1, sizeof *p);
    p->gateway = call->gateway;
    p->arena = arena_new(1024);
    set_call(p, req, spec, buf_str(&url));
    start(p);
    return 0;
}

enum s3_error upload_call_failure(const struct error *err, struct s3_failure *why)
{
    bool is_gone = err->code == E_NOT_FOUND;
    return s3_fail(why, is_gone ? S3_NO_UPLOAD : s3_error_of(err->code), "%s", err->message);
}
