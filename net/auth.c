#include "net/auth.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/rng.h"

/* A cluster of a thousand nodes, each with a few clients. */
enum { FRESH_MAX = 256, PROVEN_MAX = 8192 };

struct auth {
    struct cluster_keys keys;
    char node[AUTH_NAME_MAX];
    char boot[AUTH_NAME_MAX];
    void (*stamp)(void *ctx, struct auth_stamp *out);
    void *ctx;
    pthread_mutex_t lock; /* of the sessions; nothing is taken under it */
    struct auth_sessions *sessions;
};

/* --- the whole -------------------------------------------------------------------------------- */

int auth_new(const struct auth_config *config, struct auth **out, struct error *err)
{
    struct cluster_keys keys = {0};
    int code = config->key_file[0] != '\0' ? cluster_keys_load(config->key_file, &keys, err) : 0;
    if (code != 0)
        return code;
    struct auth *a = xcalloc(1, sizeof *a);
    a->keys = keys;
    OPENSSL_cleanse(&keys, sizeof keys);
    snprintf(a->node, sizeof a->node, "%s", config->node);
    snprintf(a->boot, sizeof a->boot, "%s", config->boot);
    a->stamp = config->stamp;
    a->ctx = config->ctx;
    pthread_mutex_init(&a->lock, NULL);
    a->sessions = auth_sessions_new(FRESH_MAX, PROVEN_MAX);
    *out = a;
    return 0;
}

void auth_free(struct auth *a)
{
    if (a == NULL)
        return;
    auth_sessions_free(a->sessions);
    pthread_mutex_destroy(&a->lock);
    OPENSSL_cleanse(&a->keys, sizeof a->keys);
    free(a);
}

bool auth_has_key(const struct auth *a)
{
    return a->keys.count > 0;
}

static bool is_loopback(const char *address)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, address, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, address, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

int auth_check_address(const char *key_file, const char *address, struct error *err)
{
    if (key_file[0] != '\0' || is_loopback(address))
        return 0;
    return error_set(err, E_INVALID,
                     "--cluster-key-file is missing: without a cluster key anybody who reaches "
                     "--address %s could act as a node, so that only a loopback address is "
                     "listened on",
                     address);
}

void auth_stamp(const struct auth *a, struct auth_stamp *out)
{
    *out = (struct auth_stamp){0};
    if (a->stamp != NULL)
        a->stamp(a->ctx, out);
}

/* --- the caller's side ------------------------------------------------------------------------ */

char *auth_greet(const struct auth *a, struct auth_opening *o)
{
    unsigned char nonce[AUTH_NONCE_BYTES];
    char proof[AUTH_HEX_MAX];
    random_bytes(nonce, sizeof nonce);
    format_hex(nonce, sizeof nonce, o->nonce);
    snprintf(o->key_id, sizeof o->key_id, "%s", a->keys.keys[0].id);
    const struct auth_greeting g = {.key_id = o->key_id,
                                    .client_node = a->node,
                                    .client_boot = a->boot,
                                    .client_nonce = o->nonce};
    auth_hello_proof(a->keys.keys[0].secret, &g, proof);
    _cleanup_json_ json_t *doc =
        json_pack("{s:s, s:s, s:s, s:s, s:s}", "key", o->key_id, "node", a->node, "boot", a->boot,
                  "nonce", o->nonce, "proof", proof);
    return json_text(doc);
}

/* What is written into lines must not end one, and is kept in arrays. */
static int need_word(json_t *doc, const char *field, const char **out, struct error *err)
{
    int code = json_need_str(doc, "", field, out, err);
    if (code != 0)
        return code;
    size_t len = strlen(*out);
    if (len > 2 * AUTH_MAC_BYTES)
        return error_set(err, E_JSON, "field '%s' is too long", field);
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)(*out)[i] <= ' ')
            return error_set(err, E_JSON, "field '%s' has a blank or control character", field);
    }
    return 0;
}

static int need_words(json_t *doc, const char *const *fields, const char **const *out,
                      struct error *err)
{
    for (size_t i = 0; fields[i] != NULL; i++) {
        int code = need_word(doc, fields[i], out[i], err);
        if (code != 0)
            return code;
    }
    return 0;
}

int auth_opened(const struct auth *a, const struct auth_opening *o, const char *answer, size_t len,
                char id[2 * AUTH_SESSION_BYTES + 1], unsigned char key[AUTH_MAC_BYTES],
                struct error *err)
{
    static const char *const fields[] = {"node", "boot", "nonce", "session", "proof", NULL};
    _cleanup_json_ json_t *doc = NULL;
    struct auth_greeting g = {.key_id = o->key_id,
                              .client_node = a->node,
                              .client_boot = a->boot,
                              .client_nonce = o->nonce};
    const char *proof;
    const char **const texts[] = {&g.server_node, &g.server_boot, &g.server_nonce, &g.session,
                                  &proof};
    char wanted[AUTH_HEX_MAX];
    int code = json_parse(answer, len, &doc, err);
    if (code == 0)
        code = need_words(doc, fields, texts, err);
    if (code != 0)
        return code;
    const struct cluster_key *k = cluster_keys_find(&a->keys, o->key_id);
    auth_welcome_proof(k->secret, &g, wanted);
    if (!auth_same(proof, wanted) || strlen(g.session) != 2 * AUTH_SESSION_BYTES)
        return error_set(err, E_UNAUTHORIZED, "who answers does not have the cluster's key");
    auth_session_key(k->secret, &g, key);
    snprintf(id, 2 * AUTH_SESSION_BYTES + 1, "%s", g.session);
    return 0;
}

/* --- the called side -------------------------------------------------------------------------- */

static int take_greeting(struct auth *a, json_t *doc, struct auth_greeting *g,
                         const struct cluster_key **k, struct error *err)
{
    static const char *const fields[] = {"key", "node", "boot", "nonce", "proof", NULL};
    const char *proof;
    const char **const texts[] = {&g->key_id, &g->client_node, &g->client_boot, &g->client_nonce,
                                  &proof};
    char wanted[AUTH_HEX_MAX];
    int code = need_words(doc, fields, texts, err);
    if (code != 0)
        return code;
    *k = cluster_keys_find(&a->keys, g->key_id);
    if (*k == NULL)
        return error_set(err, E_UNAUTHORIZED, "node '%s' has another cluster key", g->client_node);
    auth_hello_proof((*k)->secret, g, wanted);
    if (!auth_same(proof, wanted))
        return error_set(err, E_UNAUTHORIZED, "the greeting is not signed with the cluster's key");
    return 0;
}

static void remember(struct auth *a, const struct cluster_key *k, const struct auth_greeting *g)
{
    pthread_mutex_lock(&a->lock);
    struct auth_session *x = auth_sessions_add(a->sessions, g->session);
    auth_session_key(k->secret, g, x->key);
    pthread_mutex_unlock(&a->lock);
}

static char *welcome(struct auth *a, const struct cluster_key *k, struct auth_greeting *g)
{
    unsigned char bytes[AUTH_NONCE_BYTES];
    char nonce[AUTH_HEX_MAX], session[AUTH_HEX_MAX], proof[AUTH_HEX_MAX];
    random_bytes(bytes, AUTH_NONCE_BYTES);
    format_hex(bytes, AUTH_NONCE_BYTES, nonce);
    random_bytes(bytes, AUTH_SESSION_BYTES);
    format_hex(bytes, AUTH_SESSION_BYTES, session);
    g->server_node = a->node;
    g->server_boot = a->boot;
    g->server_nonce = nonce;
    g->session = session;
    auth_welcome_proof(k->secret, g, proof);
    remember(a, k, g);
    _cleanup_json_ json_t *doc =
        json_pack("{s:s, s:s, s:s, s:s, s:s}", "node", a->node, "boot", a->boot, "nonce", nonce,
                  "session", session, "proof", proof);
    return json_text(doc);
}

int auth_answer(struct auth *a, const char *greeting, size_t len, char **answer, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    struct auth_greeting g = {0};
    const struct cluster_key *k;
    if (!auth_has_key(a))
        return error_set(err, E_UNSUPPORTED, "node '%s' was started without a cluster key",
                         a->node);
    int code = json_parse(greeting, len, &doc, err);
    if (code == 0)
        code = take_greeting(a, doc, &g, &k, err);
    if (code == 0)
        *answer = welcome(a, k, &g);
    return code;
}

/* --- requests --------------------------------------------------------------------------------- */

void auth_claim_text(const struct auth_claim *c, struct buf *out)
{
    buf_printf(out, "1 %s %llu %s %s", c->session, (unsigned long long)c->counter, c->digest,
               c->mac);
}

/* The next word of `text`, which it leaves, in `out`. */
static bool take_word(const char **text, char *out, size_t room)
{
    size_t len = strcspn(*text, " ");
    if (len == 0 || len >= room)
        return false;
    memcpy(out, *text, len);
    out[len] = '\0';
    *text += len;
    *text += **text == ' ' ? 1 : 0;
    return true;
}

bool auth_claim_parse(const char *text, struct auth_claim *out)
{
    char version[4], counter[24];
    return take_word(&text, version, sizeof version) && strcmp(version, "1") == 0 &&
           take_word(&text, out->session, sizeof out->session) &&
           take_word(&text, counter, sizeof counter) &&
           parse_u64(counter, &out->counter, NULL) == 0 &&
           take_word(&text, out->digest, sizeof out->digest) &&
           take_word(&text, out->mac, sizeof out->mac) && *text == '\0';
}

const char *auth_verdict_word(enum auth_verdict v)
{
    static const char *const words[] = {
        [AUTH_PROVEN] = "none",       [AUTH_NO_CLAIM] = "missing", [AUTH_NO_SESSION] = "session",
        [AUTH_BAD_MAC] = "signature", [AUTH_REPLAYED] = "replay",
    };
    return words[v];
}

static bool find_key(struct auth *a, const char *id, unsigned char key[AUTH_MAC_BYTES])
{
    pthread_mutex_lock(&a->lock);
    const struct auth_session *x = auth_sessions_find(a->sessions, id);
    if (x != NULL)
        memcpy(key, x->key, AUTH_MAC_BYTES);
    pthread_mutex_unlock(&a->lock);
    return x != NULL;
}

/* It may have been pushed out meanwhile. */
static enum auth_verdict take_counter(struct auth *a, const struct auth_claim *c)
{
    enum auth_verdict v = AUTH_NO_SESSION;
    pthread_mutex_lock(&a->lock);
    struct auth_session *x = auth_sessions_find(a->sessions, c->session);
    if (x != NULL) {
        v = auth_window_take(&x->window, c->counter) ? AUTH_PROVEN : AUTH_REPLAYED;
        auth_sessions_used(a->sessions, x);
    }
    pthread_mutex_unlock(&a->lock);
    return v;
}

enum auth_verdict auth_check(struct auth *a, const struct auth_claim *c, const struct buf *text)
{
    unsigned char key[AUTH_MAC_BYTES];
    char mac[AUTH_HEX_MAX];
    if (!find_key(a, c->session, key))
        return AUTH_NO_SESSION;
    auth_request_mac(key, text, mac);
    OPENSSL_cleanse(key, sizeof key);
    return auth_same(c->mac, mac) ? take_counter(a, c) : AUTH_BAD_MAC;
}
