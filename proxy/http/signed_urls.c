#include "proxy/http/signed_urls.h"

#include <string.h>

#include "access/guard.h"
#include "access/redirect_proof.h"
#include "cluster/members/location.h"
#include "common/jsonx.h"
#include "proxy/http/auth_token.h"
#include "proxy/primary/proxy.h"

enum { BODY_MAX = 16 << 10 };

/* What a URL can be for, and the right that its user needs. */
static const struct purpose {
    const char *method;
    enum right right;
    bool reads;
} purposes[] = {{"GET", RIGHT_READ, true}, {"PUT", RIGHT_WRITE, false}};

struct wish {
    const struct purpose *purpose;
    const char *bucket, *object;
    uint64_t seconds;
};

static const struct purpose *purpose_of(const char *method, struct error *err)
{
    for (size_t i = 0; i < sizeof purposes / sizeof *purposes; i++) {
        if (strcmp(purposes[i].method, method) == 0)
            return &purposes[i];
    }
    error_set(err, E_INVALID, "field 'method': '%.32s' is not GET or PUT", method);
    return NULL;
}

static int check_seconds(const struct proxy *p, uint64_t seconds, struct error *err)
{
    uint64_t most = param_live(p->params.url_ttl_max) / 1000;
    if (seconds >= 1 && seconds <= most)
        return 0;
    return error_set(err, E_INVALID, "field 'seconds' must be 1 to %llu (url_ttl_max)",
                     (unsigned long long)most);
}

static int parse(const struct proxy *p, json_t *doc, struct wish *w, struct error *err)
{
    static const char *const fields[] = {"method", "bucket", "object", "seconds", NULL};
    const char *method;
    int r;
    if (!json_is_object(doc))
        return error_set(err, E_JSON, "the body must be an object");
    if ((r = json_only_fields(doc, "", fields, err)) != 0 ||
        (r = json_need_str(doc, "", "method", &method, err)) != 0 ||
        (r = json_need_str(doc, "", "bucket", &w->bucket, err)) != 0 ||
        (r = json_need_str(doc, "", "object", &w->object, err)) != 0 ||
        (r = json_need_u64(doc, "", "seconds", &w->seconds, err)) != 0 ||
        (r = check_seconds(p, w->seconds, err)) != 0 ||
        (r = bucket_name_check(w->bucket, err)) != 0 ||
        (r = object_name_check(w->object, strlen(w->object), err)) != 0)
        return r;
    w->purpose = purpose_of(method, err);
    return w->purpose != NULL ? 0 : err->code;
}

static void reply_url(struct http_request *req, const struct bucket *b, const struct wish *w)
{
    const struct proxy *p = http_user(req);
    const struct redirect_call call = {.reads = w->purpose->reads,
                                       .method = w->purpose->method,
                                       .bucket_id = b->id,
                                       .object = w->object};
    uint64_t expires_ms;
    _cleanup_(buf_done)
    struct buf url = BUF_INIT;
    buf_puts(&url, p->public_url);
    location_put_object(&url, b->name, w->object);
    buf_puts(&url, "?dfcu=");
    guard_put_url_proof(req, &call, w->seconds * 1000, &expires_ms, &url);
    _cleanup_json_ json_t *doc =
        json_pack("{s:s, s:I}", "url", buf_str(&url), "expires_ms", (json_int_t)expires_ms);
    http_reply_header(req, "Cache-Control", "no-store");
    http_reply_json(req, 200, doc);
}

/* What the caller may not see is told before whether the bucket exists. */
static void url_body(struct http_request *req, const char *data, size_t len)
{
    struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    _cleanup_json_ json_t *doc = NULL;
    const struct bucket *b = NULL;
    struct wish w;
    struct error err = ERROR_INIT;
    int r;
    if ((r = json_parse(data, len, &doc, &err)) == 0 && (r = parse(p, doc, &w, &err)) == 0 &&
        (r = guard_ask(req, w.purpose->right, w.bucket, w.object, &err)) == 0 &&
        (b = bmd_bucket(&s->bmd, w.bucket)) == NULL)
        r = proxy_no_bucket(p, w.bucket, &err);
    if (r != 0)
        http_reply_error(req, &err);
    else
        reply_url(req, b, &w);
}

static void url_begin(struct http_request *req)
{
    if (auth_enter(req) != NULL)
        http_collect_body(req, BODY_MAX, url_body);
}

const struct http_route signed_url_routes[] = {
    {.name = "auth_url",
     .method = HTTP_POST,
     .pattern = "/v1/auth/url",
     .nets = NET_PUBLIC,
     .right = RIGHT_ANY,
     .begin = url_begin,
     .summary =
         "A signed URL: every client that has it can download or upload one object, as the caller. "
         "Needs the right `read` or `write` on the object. It ends with its time, with the "
         "right, and with the tokens of the user.",
     .body =
         "`{\"method\": \"GET\" (HEAD, too) or \"PUT\", \"bucket\", \"object\", \"seconds\": 1 to "
         "url_ttl_max (1 h)}`",
     .reply = "200 `{\"url\", \"expires_ms\"}`; the URL leads to this proxy and is for the whole "
              "object, without a range; clients of it follow redirects",
     .errors = "unauthorized access_denied invalid_json invalid_argument invalid_name "
               "bucket_not_found not_supported (no access control)"},
    {.name = NULL},
};
