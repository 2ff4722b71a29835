#include "proxy/http/auth_routes.h"

#include "access/guard.h"
#include "access/login.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "proxy/http/auth_token.h"
#include "proxy/http/password_login.h"
#include "proxy/primary/proxy.h"

enum { LOGIN_BODY_MAX = 4096 };

/* --- login ------------------------------------------------------------------------------------ */

/* What has the form of an access key is no secret, which is longer. */
static void note_access_key(struct http_request *req, json_t *doc)
{
    const char *access = json_string_value(json_object_get(doc, "access"));
    if (access != NULL && access_key_is_valid(access))
        guard_note_login(req, access);
}

static void login_by_proof(struct http_request *req, json_t *doc)
{
    struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    const struct key_owner *o = NULL;
    struct error err = ERROR_INIT;
    struct proof_keys *keys = guard_keys(p->guard);
    note_access_key(req, doc);
    int code = login_by_key(p->login, keys, &s->access, doc, clock_wall_ms(), &o, &err);
    proof_keys_unref(keys);
    if (code != 0)
        http_reply_error(req, &err);
    else
        auth_reply_token(req, o->user, o->access);
}

static void login_body(struct http_request *req, const char *data, size_t len)
{
    _cleanup_json_ json_t *doc = NULL;
    struct error err = ERROR_INIT;
    if (json_parse_secret(data, len, &doc, &err) != 0)
        http_reply_error(req, &err);
    else if (json_object_get(doc, "password") != NULL)
        password_login_begin(req, doc);
    else
        login_by_proof(req, doc);
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
     .summary =
         "Login: a proof of an access key's secret gives a token. So does a person's password, "
         "over TLS or from the proxy's machine. A name with five wrong passwords within a "
         "minute waits for a minute.",
     .body = "`{\"access\", \"time_ms\": now, \"nonce\": 16 to 64 hexadecimal digits, \"proof\": "
             "HMAC-SHA256 with the secret of the lines dfc-login-1, access, time_ms and nonce, "
             "each with its newline, in hexadecimal digits}`; or `{\"user\", \"password\"}`",
     .reply = "200 `{\"token\", \"expires_ms\", \"user\"}`",
     .errors =
         "unauthorized access_denied (no TLS) invalid_name invalid_json rate_limited overloaded "
         "not_supported (no access control)"},
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
