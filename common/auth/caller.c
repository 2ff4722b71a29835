#include "common/auth/caller.h"

#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/parse.h"
#include "common/rng.h"

/* --- opening a session ------------------------------------------------------------------------ */

char *auth_caller_ask(const struct auth_caller *c, struct auth_opening *o)
{
    *o = (struct auth_opening){0};
    snprintf(o->key_id, sizeof o->key_id, "%s", c->key->id);
    _cleanup_json_ json_t *doc = json_pack("{s:s, s:s, s:s, s:s}", "ask", "challenge", "key",
                                           o->key_id, "node", c->node, "boot", c->boot);
    return json_text(doc);
}

int auth_caller_challenged(struct auth_opening *o, const char *answer, size_t len,
                           struct error *err)
{
    static const char *const fields[] = {"node", "challenge", NULL};
    _cleanup_json_ json_t *doc = NULL;
    const char *node, *challenge;
    const char **const texts[] = {&node, &challenge};
    int code = json_parse(answer, len, &doc, err);
    if (code == 0)
        code = auth_need_words(doc, fields, texts, err);
    if (code != 0)
        return code;
    snprintf(o->node, sizeof o->node, "%s", node);
    snprintf(o->challenge, sizeof o->challenge, "%s", challenge);
    return 0;
}

/* It misses the nonce in the question. */
bool auth_caller_is_earlier(int code)
{
    return code == E_JSON;
}

char *auth_caller_greet(const struct auth_caller *c, struct auth_opening *o)
{
    unsigned char nonce[AUTH_NONCE_BYTES];
    char proof[AUTH_HEX_MAX];
    random_bytes(nonce, sizeof nonce);
    format_hex(nonce, sizeof nonce, o->nonce);
    snprintf(o->key_id, sizeof o->key_id, "%s", c->key->id);
    bool challenged = o->challenge[0] != '\0';
    const struct auth_greeting g = {.key_id = o->key_id,
                                    .client_node = c->node,
                                    .client_boot = c->boot,
                                    .client_nonce = o->nonce,
                                    .server_node = challenged ? o->node : NULL,
                                    .server_nonce = challenged ? o->challenge : NULL};
    auth_hello_proof(c->key->secret, &g, proof);
    _cleanup_json_ json_t *doc = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s*}", "key", o->key_id, "node", c->node, "boot", c->boot,
        "nonce", o->nonce, "proof", proof, "challenge", challenged ? o->challenge : NULL);
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

int auth_need_words(json_t *doc, const char *const *fields, const char **const *out,
                    struct error *err)
{
    for (size_t i = 0; fields[i] != NULL; i++) {
        int code = need_word(doc, fields[i], out[i], err);
        if (code != 0)
            return code;
    }
    return 0;
}

int auth_caller_opened(const struct auth_caller *c, struct auth_opening *o, const char *answer,
                       size_t len, char id[2 * AUTH_SESSION_BYTES + 1],
                       unsigned char key[AUTH_MAC_BYTES], struct error *err)
{
    static const char *const fields[] = {"node", "boot", "nonce", "session", "proof", NULL};
    _cleanup_json_ json_t *doc = NULL;
    struct auth_greeting g = {.key_id = o->key_id,
                              .client_node = c->node,
                              .client_boot = c->boot,
                              .client_nonce = o->nonce};
    const char *proof;
    const char **const texts[] = {&g.server_node, &g.server_boot, &g.server_nonce, &g.session,
                                  &proof};
    char wanted[AUTH_HEX_MAX];
    int code = json_parse(answer, len, &doc, err);
    if (code == 0)
        code = auth_need_words(doc, fields, texts, err);
    if (code != 0)
        return code;
    auth_welcome_proof(c->key->secret, &g, wanted);
    if (!auth_same(proof, wanted) || strlen(g.session) != 2 * AUTH_SESSION_BYTES)
        return error_set(err, E_UNAUTHORIZED,
                         "the peer that answers does not have the cluster's key");
    if (o->node[0] != '\0' && strcmp(g.server_node, o->node) != 0)
        return error_set(err, E_UNAUTHORIZED, "node '%s' answers a greeting for node '%s'",
                         g.server_node, o->node);
    snprintf(o->node, sizeof o->node, "%s", g.server_node);
    auth_session_key(c->key->secret, &g, key);
    snprintf(id, 2 * AUTH_SESSION_BYTES + 1, "%s", g.session);
    return 0;
}

/* --- the header ------------------------------------------------------------------------------- */

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
