#include "proxy/http/password_login.h"

#include <openssl/crypto.h>
#include <string.h>

#include "access/guard.h"
#include "access/password.h"
#include "access/password_tries.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "io/pool.h"
#include "proxy/http/auth_token.h"
#include "proxy/primary/proxy.h"

/* Lives in the request's arena. */
struct attempt {
    struct http_request *req;
    char *user, *password;
};

static int check_way(const struct proxy *p, struct http_request *req, struct error *err)
{
    if (p->tls != NULL || password_peer_is_local(http_peer(req)))
        return 0;
    return error_set(err, E_ACCESS_DENIED,
                     "a password is taken over TLS or from this machine only: start the proxy with "
                     "--tls-cert, or log in with an access key");
}

static int parse(json_t *doc, const char **user, const char **password, struct error *err)
{
    static const char *const fields[] = {"user", "password", NULL};
    int r;
    if ((r = json_only_fields(doc, "", fields, err)) != 0 ||
        (r = json_need_str(doc, "", "user", user, err)) != 0 ||
        (r = json_need_str(doc, "", "password", password, err)) != 0)
        return r;
    return user_name_check(*user, err);
}

static int wait_for_turn(struct http_request *req, const char *user, uint64_t wait_ms,
                         struct error *err)
{
    char seconds[24];
    snprintf(seconds, sizeof seconds, "%llu", (unsigned long long)(wait_ms + 999) / 1000);
    http_reply_header(req, "Retry-After", seconds);
    return error_set(err, E_RATE_LIMITED,
                     "%d logins as '%s' have failed at this proxy within a minute: wait %s s",
                     PASSWORD_TRIES_MAX, user, seconds);
}

/* The user is the snapshot's. */
static int check_password(struct proxy *p, struct attempt *a, const struct cluster_state *s,
                          const struct user **out, struct error *err)
{
    uint64_t wait_ms = password_tries_begin(p->password_tries, a->user, clock_ms());
    if (wait_ms > 0)
        return wait_for_turn(a->req, a->user, wait_ms, err);
    *out = access_user(&s->access, a->user);
    if (!password_opens(*out, a->password))
        return error_set(err, E_UNAUTHORIZED, "no user has this name and password");
    password_tries_forgive(p->password_tries, a->user);
    return 0;
}

/* In a thread of the pool: a hash takes 100 ms. */
static void run(void *arg)
{
    struct attempt *a = arg;
    struct proxy *p = http_user(a->req);
    const struct user *user = NULL;
    char tag[PASSWORD_TAG_CHARS + 1];
    struct error err = ERROR_INIT;
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    log_set_request(http_request_id(a->req));
    int r = check_password(p, a, s, &user, &err);
    OPENSSL_cleanse(a->password, strlen(a->password));
    if (r == 0) {
        password_tag(user->password, tag);
        auth_reply_token(a->req, user, tag);
    } else {
        http_reply_error(a->req, &err);
    }
    log_set_request(NULL);
}

/* A name that no user has may be a password in the wrong field. */
static void note_user(struct proxy *p, struct http_request *req, const char *name)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    if (access_user(&s->access, name) != NULL)
        guard_note_login(req, name);
}

void password_login_begin(struct http_request *req, json_t *doc)
{
    struct proxy *p = http_user(req);
    const char *user, *password;
    struct error err = ERROR_INIT;
    int r = check_way(p, req, &err);
    if (r == 0)
        r = parse(doc, &user, &password, &err);
    if (r == 0) {
        note_user(p, req, user);
        struct attempt *a = arena_alloc(http_arena(req), sizeof *a);
        *a = (struct attempt){.req = req,
                              .user = arena_strdup(http_arena(req), user),
                              .password = arena_strdup(http_arena(req), password)};
        r = pool_submit(p->passwords, run, a, &err);
    }
    if (r != 0)
        http_reply_error(req, &err);
}
