#include "proxy/http/auth_routes.h"

#include "access/guard.h"
#include "access/login.h"
#include "access/token.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/rng.h"
#include "proxy/primary/proxy.h"

enum { LOGIN_BODY_MAX = 4096 };

struct proxy *auth_enter(struct http_request *req)
{
    struct proxy *p = proxy_enter_objects(req);
    struct error err;
    if (p == NULL || p->guard != NULL)
        return p;
    error_set(&err, E_UNSUPPORTED,
              "proxy '%s' was started without --public-auth: there are no users", p->id);
    http_reply_error(req, &err);
    return NULL;
}

/* --- login ------------------------------------------------------------------------------------ */

static void reply_token(struct http_request *req, const struct proof_keys *keys,
                        const struct user *user, const char *access, int64_t now_ms)
{
    const struct proxy *p = http_user(req);
    struct token t = {.issued_ms = (uint64_t)now_ms,
                      .expires_ms = (uint64_t)now_ms + p->params.token_ttl};
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    snprintf(t.user, sizeof t.user, "%s", user->id);
    snprintf(t.access, sizeof t.access, "%s", access);
    random_bytes(t.random, sizeof t.random);
    token_put(keys, &t, &text);
    _cleanup_json_ json_t *doc = json_pack("{s:s, s:I, s:s}", "token", buf_str(&text), "expires_ms",
                                           (json_int_t)t.expires_ms, "user", user->name);
    http_reply_header(req, "Cache-Control", "no-store");
    http_reply_json(req, 200, doc);
}

static void login_body(struct http_request *req, const char *data, size_t len)
{
    struct proxy *p = http_user(req);
    int64_t now_ms = clock_wall_ms();
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    _cleanup_json_ json_t *doc = NULL;
    const struct key_owner *o = NULL;
    struct error err = ERROR_INIT;
    struct proof_keys *keys = guard_keys(p->guard);
    if (json_parse_secret(data, len, &doc, &err) != 0 ||
        login_by_key(p->login, keys, &s->access, doc, now_ms, &o, &err) != 0)
        http_reply_error(req, &err);
    else
        reply_token(req, keys, o->user, o->access, now_ms);
    proof_keys_unref(keys);
}

static void login_begin(struct http_request *req)
{
    if (auth_enter(req) != NULL)
        http_collect_body(req, LOGIN_BODY_MAX, login_body);
}

/* --- who somebody is -------------------------------------------------------------------------- */

static void whoami_begin(struct http_request *req)
{
    if (auth_enter(req) == NULL)
        return;
    const struct user *user = guard_user(req);
    _cleanup_json_ json_t *doc = user_to_json(user, ACCESS_PUBLIC);
    http_reply_json(req, 200, doc);
}

const struct http_route auth_routes[] = {
    {.name = "auth_token",
     .method = HTTP_POST,
     .pattern = "/v1/auth/token",
     .nets = NET_PUBLIC,
     .right = RIGHT_NONE,
     .begin = login_begin,
     .summary = "Login: a proof of an access key's secret gives a token.",
     .body = "`{\"access\", \"time_ms\": now, \"nonce\": 16 to 64 hexadecimal digits, \"proof\": "
             "HMAC-SHA256 with the secret of the lines dfc-login-1, access, time_ms and nonce, "
             "each with its newline, in hexadecimal digits}`",
     .reply = "200 `{\"token\", \"expires_ms\", \"user\"}`",
     .errors = "unauthorized invalid_json rate_limited not_supported (no access control)"},
    {.name = "auth_whoami",
     .method = HTTP_GET,
     .pattern = "/v1/auth/whoami",
     .nets = NET_PUBLIC,
     .right = RIGHT_ANY,
     .begin = whoami_begin,
     .summary = "The user whose token the call has.",
     .body = "",
     .reply = "200 and the user's document, without secrets",
     .errors = "unauthorized not_supported (no access control)"},
    {.name = NULL},
};
