#include "access/login.h"

#include <openssl/crypto.h>
#include <pthread.h>
#include <string.h>

#include "access/nonces.h"
#include "access/seal.h"
#include "common/jsonx.h"
#include "common/auth/login_proof.h"
#include "common/mem.h"

struct login {
    pthread_mutex_t lock;
    struct nonces *nonces;
};

struct login *login_new(void)
{
    struct login *l = xcalloc(1, sizeof *l);
    pthread_mutex_init(&l->lock, NULL);
    l->nonces = nonces_new(LOGIN_WINDOW_MS);
    return l;
}

void login_free(struct login *l)
{
    if (l == NULL)
        return;
    nonces_free(l->nonces);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

/* --- the body --------------------------------------------------------------------------------- */

struct claim {
    const char *access, *nonce, *proof;
    int64_t time_ms;
};

static bool is_nonce(const char *text)
{
    size_t len = strlen(text);
    return len >= LOGIN_NONCE_MIN && len <= LOGIN_NONCE_MAX &&
           strspn(text, "0123456789abcdefABCDEF") == len;
}

static int parse(json_t *body, struct claim *c, struct error *err)
{
    static const char *const fields[] = {"access", "time_ms", "nonce", "proof", NULL};
    uint64_t time_ms = 0;
    int r;
    if (!json_is_object(body))
        return error_set(err, E_JSON, "the body must be an object with the field 'access'");
    if ((r = json_only_fields(body, "", fields, err)) != 0 ||
        (r = json_need_str(body, "", "access", &c->access, err)) != 0 ||
        (r = json_need_u64(body, "", "time_ms", &time_ms, err)) != 0 ||
        (r = json_need_str(body, "", "nonce", &c->nonce, err)) != 0 ||
        (r = json_need_str(body, "", "proof", &c->proof, err)) != 0)
        return r;
    if (!is_nonce(c->nonce))
        return error_set(err, E_JSON, "field 'nonce' must have %d to %d hexadecimal digits",
                         LOGIN_NONCE_MIN, LOGIN_NONCE_MAX);
    if (time_ms > INT64_MAX)
        return error_set(err, E_JSON, "field 'time_ms' is no time");
    c->time_ms = (int64_t)time_ms;
    return 0;
}

/* --- the proof -------------------------------------------------------------------------------- */

static bool is_near(int64_t a, int64_t b)
{
    return a - b <= LOGIN_WINDOW_MS && b - a <= LOGIN_WINDOW_MS;
}

/* The secret of the access key; a text that nobody knows where it is not in force. */
static bool secret_of(const struct key_owner *o, const struct proof_keys *keys, int64_t now_ms,
                      char secret[static SECRET_CHARS + 1])
{
    char access_key[ACCESS_KEY_CHARS + 1];
    bool counts = o != NULL && o->user->enabled && access_key_is_in_force(o->key, now_ms);
    if (counts && seal_open(proof_keys_cluster(keys), o->user->id, o->access, o->key->secret,
                            secret, NULL) == 0)
        return true;
    secret_new(access_key, secret);
    return false;
}

static bool is_proven(const struct claim *c, const struct key_owner *o,
                      const struct proof_keys *keys, int64_t now_ms)
{
    char secret[SECRET_CHARS + 1], wanted[AUTH_HEX_MAX];
    bool known = secret_of(o, keys, now_ms, secret);
    login_proof(secret, c->access, c->time_ms, c->nonce, wanted);
    OPENSSL_cleanse(secret, sizeof secret);
    return auth_same(c->proof, wanted) && known;
}

static int take_nonce(struct login *l, const struct claim *c, int64_t now_ms, struct error *err)
{
    pthread_mutex_lock(&l->lock);
    enum nonce_verdict v = nonces_take(l->nonces, c->access, c->nonce, (uint64_t)now_ms);
    pthread_mutex_unlock(&l->lock);
    if (v == NONCE_FULL)
        return error_set(err, E_RATE_LIMITED,
                         "the access key '%s' has logged in %d times at this proxy within ten "
                         "minutes, its limit: keep the token for as long as it is good",
                         c->access, NONCES_PER_KEY);
    return v == NONCE_TAKEN ? 0
                            : error_set(err, E_UNAUTHORIZED,
                                        "this login was sent before; log in "
                                        "with another nonce");
}

int login_by_key(struct login *l, const struct proof_keys *keys, const struct access *doc,
                 json_t *body, int64_t now_ms, const struct key_owner **out, struct error *err)
{
    struct claim c = {0};
    int code = parse(body, &c, err);
    if (code != 0)
        return code;
    if (!is_near(c.time_ms, now_ms))
        return error_set(err, E_UNAUTHORIZED,
                         "the time of the login is more than five minutes off this proxy's clock");
    const struct key_owner *o = access_key_owner(doc, c.access);
    if (!is_proven(&c, o, keys, now_ms))
        return error_set(err, E_UNAUTHORIZED, "no key in force has this access key and secret");
    *out = o;
    return take_nonce(l, &c, now_ms, err);
}
