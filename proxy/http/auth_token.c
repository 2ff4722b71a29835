#include "proxy/http/auth_token.h"

#include "access/guard.h"
#include "access/token.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/rng.h"
#include "proxy/primary/proxy.h"

struct proxy *auth_enter(struct http_request *req)
{
    struct proxy *p = proxy_enter_objects(req);
    struct error err;
    if (p == NULL || p->guard != NULL)
        return p;
    error_set(&err, E_UNSUPPORTED,
              "proxy '%s' was started without --public-auth: there are no users, and every client "
              "may do everything",
              p->id);
    http_reply_error(req, &err);
    return NULL;
}

void auth_reply_token(struct http_request *req, const struct user *user, const char *access)
{
    const struct proxy *p = http_user(req);
    int64_t now_ms = clock_wall_ms();
    struct proof_keys *keys = guard_keys(p->guard);
    struct token t = {.issued_ms = (uint64_t)now_ms,
                      .expires_ms = (uint64_t)now_ms + param_live(p->params.token_ttl)};
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    snprintf(t.user, sizeof t.user, "%s", user->id);
    snprintf(t.access, sizeof t.access, "%s", access);
    random_bytes(t.random, sizeof t.random);
    token_put(keys, &t, &text);
    proof_keys_unref(keys);
    _cleanup_json_ json_t *doc = json_pack("{s:s, s:I, s:s}", "token", buf_str(&text), "expires_ms",
                                           (json_int_t)t.expires_ms, "user", user->name);
    http_reply_header(req, "Cache-Control", "no-store");
    http_reply_json(req, 200, doc);
}
