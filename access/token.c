#include "access/token.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#include "access/bytes.h"
#include "common/base64url.h"
#include "common/parse.h"

enum {
    FIELDS = TOKEN_FIELDS,
    FIELDS_CHARS = BASE64URL_CHARS(FIELDS),
    MAC_CHARS = BASE64URL_CHARS(AUTH_MAC_BYTES),
};

static const char prefix[] = "dfc1.";
enum { PREFIX = sizeof prefix - 1, SIGNED = PREFIX + FIELDS_CHARS, WHOLE = SIGNED + 1 + MAC_CHARS };

void token_write_fields(const struct proof_key *key, const struct token *t,
                        unsigned char out[static FIELDS])
{
    char access[ACCESS_KEY_CHARS + 1] = "";
    snprintf(access, sizeof access, "%s", t->access);
    unsigned char *at = bytes_put(out, key->id, PROOF_KEY_ID_BYTES);
    at = bytes_put_hex(at, t->user, TOKEN_USER_BYTES);
    at = bytes_put(at, access, ACCESS_KEY_CHARS);
    at = bytes_put_u64(at, t->issued_ms);
    at = bytes_put_u64(at, t->expires_ms);
    bytes_put(at, t->random, TOKEN_RANDOM_BYTES);
}

enum proof_verdict token_read_fields(const unsigned char fields[static FIELDS], uint64_t now_ms,
                                     struct token *out)
{
    const unsigned char *at = fields + PROOF_KEY_ID_BYTES;
    format_hex(at, TOKEN_USER_BYTES, out->user);
    at += TOKEN_USER_BYTES;
    memcpy(out->access, at, ACCESS_KEY_CHARS);
    out->access[ACCESS_KEY_CHARS] = '\0';
    at += ACCESS_KEY_CHARS;
    out->issued_ms = bytes_u64(at);
    out->expires_ms = bytes_u64(at + 8);
    memcpy(out->random, at + 16, TOKEN_RANDOM_BYTES);
    return now_ms < out->expires_ms ? PROOF_VALID : PROOF_EXPIRED;
}

void token_put(const struct proof_keys *keys, const struct token *t, struct buf *out)
{
    const struct proof_key *key = proof_keys_own(keys);
    unsigned char fields[FIELDS], mac[AUTH_MAC_BYTES];
    char text[WHOLE];
    token_write_fields(key, t, fields);
    memcpy(text, prefix, PREFIX);
    base64url_encode(fields, sizeof fields, text + PREFIX);
    mac_key_sum(key->token, text, SIGNED, mac);
    text[SIGNED] = '.';
    base64url_encode(mac, sizeof mac, text + SIGNED + 1);
    buf_append(out, text, sizeof text);
}

static bool split(const char *text, unsigned char fields[FIELDS], unsigned char mac[AUTH_MAC_BYTES])
{
    return strnlen(text, WHOLE + 1) == WHOLE && memcmp(text, prefix, PREFIX) == 0 &&
           text[SIGNED] == '.' && base64url_decode(text + PREFIX, FIELDS_CHARS, fields) &&
           base64url_decode(text + SIGNED + 1, MAC_CHARS, mac);
}

enum proof_verdict token_check(const struct proof_keys *keys, const char *text, uint64_t now_ms,
                               struct token *out)
{
    unsigned char fields[FIELDS], mac[AUTH_MAC_BYTES], wanted[AUTH_MAC_BYTES];
    if (!split(text, fields, mac))
        return PROOF_INVALID;
    const struct proof_key *key = proof_keys_find(keys, fields);
    if (key == NULL)
        return PROOF_INVALID;
    mac_key_sum(key->token, text, SIGNED, wanted);
    if (CRYPTO_memcmp(mac, wanted, sizeof mac) != 0)
        return PROOF_INVALID;
    return token_read_fields(fields, now_ms, out);
}
