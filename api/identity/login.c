#include "api/identity/login.h"

#include <openssl/crypto.h>

#include "api/failure.h"
#include "api/identity/token_cache.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/auth/login_proof.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/rng.h"

enum { NONCE_BYTES = 16 };

static const char bearer[] = "Bearer ";

/* What a login brings. */
struct grant {
    char *token; /* "Bearer …" */
    uint64_t renew_ms;
};

static char *request_text(const struct identity *id)
{
    unsigned char random[NONCE_BYTES];
    char nonce[2 * NONCE_BYTES + 1], proof[AUTH_HEX_MAX];
    int64_t now_ms = clock_wall_ms();
    random_bytes(random, sizeof random);
    format_hex(random, sizeof random, nonce);
    login_proof(identity_secret(id), identity_access(id), now_ms, nonce, proof);
    _cleanup_json_ json_t *doc =
        json_pack("{s:s, s:I, s:s, s:s}", "access", identity_access(id), "time_ms",
                  (json_int_t)now_ms, "nonce", nonce, "proof", proof);
    return doc != NULL ? json_text(doc) : NULL;
}

/* Where the clocks differ by more than the token's life, its end is told by a 401. */
static uint64_t renewal_of(uint64_t expires_ms, uint64_t now_ms)
{
    return expires_ms > now_ms ? clock_ms() + (expires_ms - now_ms) / 5 * 4 : UINT64_MAX;
}

/* For the next client. */
static void keep(const struct dfc_client *c, const char *token, uint64_t expires_ms,
                 uint64_t now_ms)
{
    if (expires_ms <= now_ms)
        return;
    const struct kept_token kept = {(char *)token, now_ms + (expires_ms - now_ms) / 5 * 4,
                                    expires_ms};
    token_cache_put(client_tokens(c), now_ms, &kept);
}

static int read_grant(const struct dfc_client *c, struct reply *r, struct grant *out,
                      struct dfc_error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    struct error e = ERROR_INIT;
    const char *token = NULL;
    uint64_t expires_ms = 0;
    int code = json_parse_secret(buf_str(&r->text), r->text.len, &doc, &e);
    if (code == 0)
        code = json_need_str(doc, "", "token", &token, &e);
    if (code == 0)
        code = json_need_u64(doc, "", "expires_ms", &expires_ms, &e);
    if (r->text.data != NULL)
        OPENSSL_cleanse(r->text.data, r->text.len);
    if (code != 0)
        return failure_common(err, DFC_FAILED, &e);
    if (token[strcspn(token, " \r\n")] != '\0')
        return failure_set(err, DFC_FAILED, E_JSON, "the token that the cluster gave is malformed");
    uint64_t now_ms = (uint64_t)clock_wall_ms();
    *out = (struct grant){xprintf("Bearer %s", token), renewal_of(expires_ms, now_ms)};
    keep(c, token, expires_ms, now_ms);
    return DFC_OK;
}

/* EXCHANGE_REPLIED: there is one. */
static enum exchange_end ask(const struct identity *id, struct dfc_client *c, struct handle *h,
                             const char *endpoint, struct grant *out, struct dfc_error *err)
{
    _cleanup_free_ char *url = xprintf("%s/v1/auth/token", endpoint);
    _cleanup_free_ char *text = request_text(id);
    _cleanup_(exchange_reply_done)
    struct reply reply = {0};
    if (text == NULL) {
        failure_set(err, DFC_INVALID, E_INVALID, "the access key is not UTF-8");
        return EXCHANGE_STOPPED;
    }
    enum exchange_end end = exchange_post(c, h, url, text, &reply, err);
    if (end != EXCHANGE_REPLIED)
        return end;
    if (reply.status == 200)
        return read_grant(c, &reply, out, err) == DFC_OK ? EXCHANGE_REPLIED : EXCHANGE_STOPPED;
    failure_reply(err, reply.status, reply.text.data, reply.text.len);
    return reply.status == 429 || reply.status == 503 ? EXCHANGE_UNSENT : EXCHANGE_STOPPED;
}

enum exchange_end login_token(struct dfc_client *c, struct handle *h, const char *endpoint,
                              char **token, struct dfc_error *err)
{
    struct identity *id = client_identity(c);
    struct identity_failure failure = {0};
    struct grant got = {0};
    enum identity_step step = identity_token(id, token, &failure);
    if (step == IDENTITY_READY)
        return EXCHANGE_REPLIED;
    if (step == IDENTITY_LOGIN) {
        failure.end = ask(id, c, h, endpoint, &got, &failure.err);
        if (failure.end == EXCHANGE_REPLIED) {
            identity_granted(id, got.token, got.renew_ms);
            *token = got.token;
            return EXCHANGE_REPLIED;
        }
        if (identity_failed(id, &failure, token))
            return EXCHANGE_REPLIED;
    }
    if (err != NULL)
        *err = failure.err;
    return failure.end;
}

bool login_refused(struct dfc_client *c, const char *token, const struct reply *reply)
{
    struct identity *id = client_identity(c);
    const char *header =
        reply->status == 401 ? headers_get(&reply->headers, "WWW-Authenticate") : NULL;
    if (identity_secret(id) == NULL || header == NULL ||
        strncmp(header, bearer, strlen(bearer)) != 0)
        return false;
    identity_drop(id, token);
    token_cache_drop(client_tokens(c), token + strlen(bearer));
    return true;
}
