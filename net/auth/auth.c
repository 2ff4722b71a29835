#include "net/auth/auth.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/rng.h"
#include "net/auth/challenges.h"

/* A cluster of a thousand nodes, each with a few clients. */
enum { FRESH_MAX = 256, PROVEN_MAX = 8192 };

struct auth {
    bool keyed;               /* it has a key: that stays so */
    struct cluster_keys keys; /* under `lock`: a reload changes them */
    char node[AUTH_NAME_MAX];
    char boot[AUTH_NAME_MAX];
    void (*stamp)(void *ctx, struct auth_stamp *out);
    void *ctx;
    pthread_mutex_t lock; /* of what follows and the keys; nothing is taken under it */
    struct auth_sessions *sessions;
    struct auth_challenges challenges;
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
    a->keyed = keys.count > 0;
    OPENSSL_cleanse(&keys, sizeof keys);
    snprintf(a->node, sizeof a->node, "%s", config->node);
    snprintf(a->boot, sizeof a->boot, "%s", config->boot);
    a->stamp = config->stamp;
    a->ctx = config->ctx;
    pthread_mutex_init(&a->lock, NULL);
    a->sessions = auth_sessions_new(FRESH_MAX, PROVEN_MAX);
    auth_challenges_init(&a->challenges);
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
    OPENSSL_cleanse(&a->challenges, sizeof a->challenges);
    free(a);
}

bool auth_has_key(const struct auth *a)
{
    return a->keyed;
}

static bool key_left(const struct cluster_keys *was, const struct cluster_keys *now)
{
    for (size_t i = 0; i < was->count; i++) {
        if (cluster_keys_find(now, was->keys[i].id) == NULL)
            return true;
    }
    return false;
}

int auth_reload(struct auth *a, const char *key_file, bool *changed, struct error *err)
{
    struct cluster_keys keys = {0};
    *changed = false;
    if (!a->keyed)
        return 0;
    int code = cluster_keys_load(key_file, &keys, err);
    if (code != 0)
        return code;
    pthread_mutex_lock(&a->lock);
    bool left = key_left(&a->keys, &keys);
    *changed =
        left || key_left(&keys, &a->keys) || strcmp(a->keys.keys[0].id, keys.keys[0].id) != 0;
    a->keys = keys;
    if (left) { /* who has come in by it must show another one */
        auth_sessions_free(a->sessions);
        a->sessions = auth_sessions_new(FRESH_MAX, PROVEN_MAX);
    }
    pthread_mutex_unlock(&a->lock);
    OPENSSL_cleanse(&keys, sizeof keys);
    return 0;
}

/* A copy, which a reload does not change: the key of this id, or, with NULL, our own. */
static bool key_copy(struct auth *a, const char *id, struct cluster_key *out)
{
    pthread_mutex_lock(&a->lock);
    const struct cluster_key *k = id != NULL ? cluster_keys_find(&a->keys, id) : &a->keys.keys[0];
    if (k != NULL)
        *out = *k;
    pthread_mutex_unlock(&a->lock);
    return k != NULL;
}

bool auth_is_loopback(const char *address)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, address, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, address, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

int auth_check_address(const char *key_file, const char *address, struct error *err)
{
    if (key_file[0] != '\0' || auth_is_loopback(address))
        return 0;
    return error_set(err, E_INVALID,
                     "--cluster-key-file is missing: without a cluster key anybody who reaches %s "
                     "could act as a node, so that its control and data listeners (--address, "
                     "--control-address, --data-address) must be on loopback",
                     address);
}

void auth_stamp(const struct auth *a, struct auth_stamp *out)
{
    *out = (struct auth_stamp){0};
    if (a->stamp != NULL)
        a->stamp(a->ctx, out);
}

/* --- the caller's side ------------------------------------------------------------------------ */

static char *say(struct auth *a, struct auth_opening *o,
                 char *(*what)(const struct auth_caller *c, struct auth_opening *o))
{
    struct cluster_key key;
    (void)key_copy(a, NULL, &key);
    const struct auth_caller self = {.key = &key, .node = a->node, .boot = a->boot};
    char *text = what(&self, o);
    OPENSSL_cleanse(&key, sizeof key);
    return text;
}

char *auth_ask(struct auth *a, struct auth_opening *o)
{
    return say(a, o, auth_caller_ask);
}

char *auth_greet(struct auth *a, struct auth_opening *o)
{
    return say(a, o, auth_caller_greet);
}

int auth_opened(struct auth *a, struct auth_opening *o, const char *answer, size_t len,
                char id[2 * AUTH_SESSION_BYTES + 1], unsigned char key[AUTH_MAC_BYTES],
                struct error *err)
{
    struct cluster_key own;
    if (!key_copy(a, o->key_id, &own))
        return error_set(err, E_UNAUTHORIZED, "the key of the greeting is no longer in force");
    const struct auth_caller self = {.key = &own, .node = a->node, .boot = a->boot};
    int code = auth_caller_opened(&self, o, answer, len, id, key, err);
    OPENSSL_cleanse(&own, sizeof own);
    return code;
}

/* --- the called side -------------------------------------------------------------------------- */

static int need_key(struct auth *a, const char *id, const char *node, struct cluster_key *k,
                    struct error *err)
{
    if (key_copy(a, id, k))
        return 0;
    return error_set(err, E_UNAUTHORIZED, "node '%s' has another cluster key", node);
}

/* Strangers may ask, and learn the node's name. */
static int challenge(struct auth *a, json_t *doc, char **answer, struct error *err)
{
    static const char *const fields[] = {"ask", "key", "node", NULL};
    const char *ask, *key_id, *node;
    const char **const texts[] = {&ask, &key_id, &node};
    struct cluster_key k = {0};
    char hex[AUTH_HEX_MAX];
    int code = auth_need_words(doc, fields, texts, err);
    if (code == 0 && strcmp(ask, "challenge") != 0)
        code = error_set(err, E_JSON, "field 'ask' must be \"challenge\"");
    if (code == 0)
        code = need_key(a, key_id, node, &k, err);
    OPENSSL_cleanse(&k, sizeof k);
    if (code != 0)
        return code;
    auth_challenges_new(&a->challenges, clock_ms(), hex);
    _cleanup_json_ json_t *reply = json_pack("{s:s, s:s}", "node", a->node, "challenge", hex);
    *answer = json_text(reply);
    return 0;
}

static int take_challenge(struct auth *a, const char *text, struct error *err)
{
    pthread_mutex_lock(&a->lock);
    enum auth_challenge_verdict v = auth_challenges_take(&a->challenges, clock_ms(), text);
    pthread_mutex_unlock(&a->lock);
    return v == AUTH_CHALLENGE_TAKEN
               ? 0
               : error_set(err, E_UNAUTHORIZED, "%s", auth_challenge_words(v));
}

/* The greeting's challenge, and with it the node that it must name; the earlier form has none. */
static int need_challenge(struct auth *a, json_t *doc, struct auth_greeting *g, struct error *err)
{
    static const char *const fields[] = {"challenge", NULL};
    const char **const texts[] = {&g->server_nonce};
    if (json_object_get(doc, fields[0]) == NULL)
        return 0;
    g->server_node = a->node;
    return auth_need_words(doc, fields, texts, err);
}

static int take_greeting(struct auth *a, json_t *doc, struct auth_greeting *g,
                         struct cluster_key *k, struct error *err)
{
    static const char *const fields[] = {"key", "node", "boot", "nonce", "proof", NULL};
    const char *proof;
    const char **const texts[] = {&g->key_id, &g->client_node, &g->client_boot, &g->client_nonce,
                                  &proof};
    char wanted[AUTH_HEX_MAX];
    int code = auth_need_words(doc, fields, texts, err);
    if (code == 0)
        code = need_key(a, g->key_id, g->client_node, k, err);
    if (code == 0)
        code = need_challenge(a, doc, g, err);
    if (code != 0)
        return code;
    auth_hello_proof(k->secret, g, wanted);
    if (!auth_same(proof, wanted))
        return error_set(err, E_UNAUTHORIZED,
                         "the greeting is not signed with the cluster's key for node '%s'",
                         a->node);
    return g->server_nonce != NULL ? take_challenge(a, g->server_nonce, err) : 0;
}

/* The key may have been taken away since the greeting was checked (auth_reload): no session begins
 * with it then. */
static void remember(struct auth *a, enum auth_session_room room, const struct cluster_key *k,
                     const struct auth_greeting *g)
{
    pthread_mutex_lock(&a->lock);
    if (cluster_keys_find(&a->keys, k->id) != NULL) {
        struct auth_session *x = auth_sessions_add(a->sessions, room, g->session);
        auth_session_key(k->secret, g, x->key);
    }
    pthread_mutex_unlock(&a->lock);
}

static char *welcome(struct auth *a, const struct cluster_key *k, struct auth_greeting *g)
{
    unsigned char bytes[AUTH_NONCE_BYTES];
    char nonce[AUTH_HEX_MAX], session[AUTH_HEX_MAX], proof[AUTH_HEX_MAX];
    enum auth_session_room room = g->server_nonce != NULL ? ROOM_FRESH : ROOM_EARLIER;
    random_bytes(bytes, AUTH_NONCE_BYTES);
    format_hex(bytes, AUTH_NONCE_BYTES, nonce);
    random_bytes(bytes, AUTH_SESSION_BYTES);
    format_hex(bytes, AUTH_SESSION_BYTES, session);
    g->server_node = a->node;
    g->server_boot = a->boot;
    g->server_nonce = nonce;
    g->session = session;
    auth_welcome_proof(k->secret, g, proof);
    remember(a, room, k, g);
    _cleanup_json_ json_t *doc =
        json_pack("{s:s, s:s, s:s, s:s, s:s}", "node", a->node, "boot", a->boot, "nonce", nonce,
                  "session", session, "proof", proof);
    return json_text(doc);
}

static int open_session(struct auth *a, json_t *doc, char **answer, struct error *err)
{
    struct auth_greeting g = {0};
    struct cluster_key k = {0};
    int code = take_greeting(a, doc, &g, &k, err);
    if (code == 0)
        *answer = welcome(a, &k, &g);
    OPENSSL_cleanse(&k, sizeof k);
    return code;
}

int auth_answer(struct auth *a, const char *text, size_t len, char **answer, bool *opened,
                struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    *opened = false;
    if (!auth_has_key(a))
        return error_set(err, E_UNSUPPORTED, "node '%s' was started without a cluster key",
                         a->node);
    int code = json_parse(text, len, &doc, err);
    if (code != 0)
        return code;
    if (json_object_get(doc, "ask") != NULL)
        return challenge(a, doc, answer, err);
    code = open_session(a, doc, answer, err);
    *opened = code == 0;
    return code;
}

/* --- requests --------------------------------------------------------------------------------- */

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
