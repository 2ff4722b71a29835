#include "access/signed_url.h"

#include <openssl/crypto.h>
#include <string.h>

#include "access/bytes.h"
#include "common/base64url.h"
#include "common/cleanup.h"

enum { WHOLE = TOKEN_FIELDS + AUTH_MAC_BYTES, CHARS = BASE64URL_CHARS(WHOLE) };

static void sum(const struct proof_key *key, const unsigned char fields[TOKEN_FIELDS],
                const struct redirect_call *call, unsigned char mac[AUTH_MAC_BYTES])
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    buf_append(&text, fields, TOKEN_FIELDS);
    redirect_call_put(call, &text);
    mac_key_sum(key->url, text.data, text.len, mac);
}

void signed_url_put(const struct proof_keys *keys, const struct token *t,
                    const struct redirect_call *call, struct buf *out)
{
    const struct proof_key *key = proof_keys_own(keys);
    unsigned char whole[WHOLE];
    char text[CHARS];
    token_write_fields(key, t, whole);
    sum(key, whole, call, whole + TOKEN_FIELDS);
    base64url_encode(whole, sizeof whole, text);
    buf_append(out, text, sizeof text);
}

enum proof_verdict signed_url_check(const struct proof_keys *keys, const char *text,
                                    uint64_t now_ms, const struct redirect_call *call,
                                    struct token *out)
{
    unsigned char whole[WHOLE], wanted[AUTH_MAC_BYTES];
    if (strnlen(text, CHARS + 1) != CHARS || !base64url_decode(text, CHARS, whole))
        return PROOF_INVALID;
    const struct proof_key *key = proof_keys_find(keys, whole);
    if (key == NULL)
        return PROOF_INVALID;
    sum(key, whole, call, wanted);
    if (CRYPTO_memcmp(whole + TOKEN_FIELDS, wanted, sizeof wanted) != 0)
        return PROOF_INVALID;
    return token_read_fields(whole, now_ms, out);
}
