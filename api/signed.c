#include "api/signed.h"

#include <openssl/crypto.h>
#include <pthread.h>

#include "api/failure.h"
#include "api/signer.h"
#include "api/uri.h"
#include "common/auth/caller.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/rng.h"

enum { SIGNINGS_MAX = 3 }; /* of one exchange */

/* ---- opening one ---- */

static int refused(const struct signer *s, const struct reply *r, struct dfc_error *err)
{
    int rc = failure_reply(err, r->status, r->text.data, r->text.len);
    if (rc != DFC_DENIED || err == NULL)
        return rc;
    snprintf(err->message, sizeof err->message, "the key in '%s' is not this cluster's",
             signer_key_file(s));
    return rc;
}

/* EXCHANGE_REPLIED: 2xx. */
static enum exchange_end need_success(const struct signer *s, const struct reply *r,
                                      struct dfc_error *err)
{
    if (r->status >= 200 && r->status < 300)
        return EXCHANGE_REPLIED;
    refused(s, r, err);
    return r->status == 429 || r->status == 503 ? EXCHANGE_UNSENT : EXCHANGE_STOPPED;
}

static enum exchange_end end_of(int code, const struct error *e, struct dfc_error *err)
{
    if (code == 0)
        return EXCHANGE_REPLIED;
    failure_common(err, DFC_DENIED, e);
    return EXCHANGE_STOPPED;
}

static enum exchange_end take_challenge(const struct signer *s, struct auth_opening *o,
                                        struct reply *r, struct signer_session *x,
                                        struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    x->unsigned_calls = r->status == error_status(E_UNSUPPORTED);
    if (x->unsigned_calls || (r->status == error_status(E_JSON) && auth_caller_is_earlier(E_JSON)))
        return EXCHANGE_REPLIED;
    enum exchange_end end = need_success(s, r, err);
    if (end != EXCHANGE_REPLIED)
        return end;
    return end_of(auth_caller_challenged(o, buf_str(&r->text), r->text.len, &e), &e, err);
}

static enum exchange_end take_answer(const struct signer *s, const struct auth_caller *self,
                                     struct auth_opening *o, struct reply *r,
                                     struct signer_session *x, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    enum exchange_end end = need_success(s, r, err);
    if (end != EXCHANGE_REPLIED)
        return end;
    return end_of(auth_caller_opened(self, o, buf_str(&r->text), r->text.len, x->id, x->key, &e),
                  &e, err);
}

/* Packets may have been carried to another node of the cluster. */
static enum exchange_end need_node(const struct auth_opening *o, const char *origin,
                                   const char *node, struct dfc_error *err)
{
    if (node == NULL || strcmp(o->node, node) == 0)
        return EXCHANGE_REPLIED;
    failure_set(err, DFC_DENIED, E_UNAUTHORIZED,
                "node '%s' answers at %s, the address of node '%s'", o->node, origin, node);
    return EXCHANGE_STOPPED;
}

static enum exchange_end say(struct dfc_client *c, struct handle *h, const char *origin,
                             const char *text, struct reply *reply, struct dfc_error *err)
{
    _cleanup_free_ char *url = xprintf("%s/v1/intra/session", origin);
    return exchange_post(c, h, url, text, reply, err);
}

/* The question and the greeting; x->origin is set. */
static enum exchange_end converse(struct dfc_client *c, struct handle *h, struct signer_session *x,
                                  const char *node, struct dfc_error *err)
{
    struct signer *s = client_signer(c);
    const struct auth_caller self = signer_caller(s);
    struct auth_opening opening;
    _cleanup_(exchange_reply_done)
    struct reply challenge = {0};
    _cleanup_(exchange_reply_done)
    struct reply answer = {0};
    _cleanup_free_ char *question = auth_caller_ask(&self, &opening);
    enum exchange_end end = say(c, h, x->origin, question, &challenge, err);
    if (end == EXCHANGE_REPLIED)
        end = take_challenge(s, &opening, &challenge, x, err);
    if (end != EXCHANGE_REPLIED || x->unsigned_calls)
        return end;
    _cleanup_free_ char *greeting = auth_caller_greet(&self, &opening);
    end = say(c, h, x->origin, greeting, &answer, err);
    if (end == EXCHANGE_REPLIED)
        end = take_answer(s, &self, &opening, &answer, x, err);
    snprintf(x->node, sizeof x->node, "%s", opening.node);
    return end == EXCHANGE_REPLIED ? need_node(&opening, x->origin, node, err) : end;
}

/* EXCHANGE_REPLIED: there is one. */
static enum exchange_end session_open(struct dfc_client *c, struct handle *h, const char *origin,
                                      const char *node, struct dfc_error *err)
{
    struct signer *s = client_signer(c);
    if (signer_load(s, err) != DFC_OK)
        return EXCHANGE_STOPPED;
    struct signer_session *one = signer_session_new(origin);
    enum exchange_end end = converse(c, h, one, node, err);
    if (end == EXCHANGE_REPLIED)
        signer_keep(s, one);
    else
        signer_session_free(one);
    return end;
}

/* ---- signing ---- */

static void request_text(const struct exchange *x, const struct auth_claim *claim,
                         const char *target, struct buf *out)
{
    size_t len = strcspn(target, "?");
    _cleanup_free_ char *path = xstrndup(target, len);
    const struct auth_request r = {.session = claim->session,
                                   .counter = claim->counter,
                                   .method = x->method,
                                   .path = path,
                                   .query = target[len] == '?' ? target + len + 1 : "",
                                   .length = x->body != NULL ? body_size(x->body) : 0,
                                   .digest = claim->digest};
    auth_request_text(&r, out);
}

/* No header of such a call begins with Dfc-, but this one. */
static int sign(const struct exchange *x, struct signer_pen *pen, const char *target,
                struct buf *line, struct dfc_error *err)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    struct checksum_value digest;
    snprintf(pen->claim.digest, sizeof pen->claim.digest, "-");
    if (x->body != NULL && body_size(x->body) > 0) {
        int rc = body_checksum(x->body, CHECKSUM_SHA256, &digest, err);
        if (rc != DFC_OK)
            return rc;
        checksum_hex(&digest, pen->claim.digest);
    }
    request_text(x, &pen->claim, target, &text);
    auth_request_mac(pen->key, &text, pen->claim.mac);
    buf_puts(line, "Dfc-Auth: ");
    auth_claim_text(&pen->claim, line);
    return DFC_OK;
}

static enum exchange_end run_signed(struct dfc_client *c, struct handle *h,
                                    const struct exchange *x, struct signer_pen *pen,
                                    const char *target, struct reply *reply, struct dfc_error *err)
{
    struct exchange signed_one = *x;
    _cleanup_(buf_done)
    struct buf line = BUF_INIT;
    struct curl_slist first = {.next = x->headers};
    if (pen->signs) {
        if (sign(x, pen, target, &line, err) != DFC_OK)
            return EXCHANGE_STOPPED;
        first.data = line.data;
        signed_one.headers = &first;
    }
    if (x->body != NULL && body_begin(x->body, err) != DFC_OK)
        return EXCHANGE_STOPPED;
    return exchange_run(c, h, &signed_one, reply, err);
}

/* The word of WWW-Authenticate: Dfc error="word". */
static bool challenged(const struct reply *r, const char *word)
{
    const char *header = r->status == 401 ? headers_get(&r->headers, "WWW-Authenticate") : NULL;
    _cleanup_free_ char *wanted = xprintf("Dfc error=\"%s\"", word);
    return header != NULL && strcmp(header, wanted) == 0;
}

static enum exchange_end run_unsigned(struct dfc_client *c, struct handle *h,
                                      const struct exchange *x, struct reply *reply,
                                      struct dfc_error *err)
{
    enum exchange_end end = exchange_run(c, h, x, reply, err);
    if (end != EXCHANGE_REPLIED || !challenged(reply, "missing"))
        return end;
    failure_reply(err, reply->status, reply->text.data, reply->text.len);
    if (err != NULL)
        snprintf(err->message, sizeof err->message,
                 "this call needs the cluster key: give --cluster-key-file, or set "
                 "DFC_CLUSTER_KEY_FILE");
    return EXCHANGE_STOPPED;
}

enum exchange_end signed_exchange_run(struct dfc_client *c, struct handle *h,
                                      const struct exchange *x, struct reply *reply,
                                      struct dfc_error *err)
{
    struct signer *s = client_signer(c);
    if (!signer_has_key(s))
        return run_unsigned(c, h, x, reply, err);
    _cleanup_free_ char *origin = uri_origin(x->url);
    for (int i = 1;; i++) {
        struct signer_pen pen = {0};
        while (!signer_take(s, origin, x->node, &pen)) {
            enum exchange_end end = session_open(c, h, origin, x->node, err);
            if (end != EXCHANGE_REPLIED)
                return end;
        }
        enum exchange_end end = run_signed(c, h, x, &pen, x->url + strlen(origin), reply, err);
        OPENSSL_cleanse(pen.key, sizeof pen.key);
        bool forgotten = challenged(reply, pen.signs ? "session" : "missing");
        if (forgotten)
            signer_drop(s, origin, pen.claim.session);
        if (i == SIGNINGS_MAX || (!forgotten && !challenged(reply, "replay")))
            return end;
    }
}
