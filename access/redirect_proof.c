#include "access/redirect_proof.h"

#include <openssl/crypto.h>
#include <string.h>

#include "access/bytes.h"
#include "common/base64url.h"
#include "common/cleanup.h"

/* Of the whole: key id, then what the mac begins with, then the mac. */
enum {
    HEAD = TOKEN_USER_BYTES + 8,
    SIGNED_AT = PROOF_KEY_ID_BYTES,
    MAC_AT = SIGNED_AT + HEAD,
    WHOLE = MAC_AT + AUTH_MAC_BYTES,
    CHARS = BASE64URL_CHARS(WHOLE),
};

/* 0, or 1 and the length and the text. */
static void put_field(struct buf *out, const char *text)
{
    unsigned char head[9] = {text != NULL};
    size_t len = text != NULL ? strlen(text) : 0;
    bytes_put_u64(head + 1, len);
    buf_append(out, head, text != NULL ? sizeof head : 1);
    if (text != NULL)
        buf_append(out, text, len);
}

void redirect_call_put(const struct redirect_call *call, struct buf *out)
{
    unsigned char bucket[8];
    bytes_put_u64(bucket, call->bucket_id);
    buf_append(out, bucket, sizeof bucket);
    put_field(out, call->reads ? "GET" : call->method);
    put_field(out, call->object);
    put_field(out, call->offset);
    put_field(out, call->length);
    put_field(out, call->range);
    put_field(out, call->new_name);
    if (call->member != NULL) /* without one the bytes are those of earlier releases */
        put_field(out, call->member);
}

static void sum(const struct proof_key *key, const unsigned char head[HEAD],
                const struct redirect_call *call, unsigned char mac[AUTH_MAC_BYTES])
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    buf_append(&text, head, HEAD);
    redirect_call_put(call, &text);
    mac_key_sum(key->redirect, text.data, text.len, mac);
}

void redirect_proof_put(const struct proof_keys *keys, const char *user_id, uint64_t expires_ms,
                        const struct redirect_call *call, struct buf *out)
{
    const struct proof_key *key = proof_keys_own(keys);
    unsigned char whole[WHOLE];
    char text[CHARS];
    bytes_put(whole, key->id, PROOF_KEY_ID_BYTES);
    bytes_put_u64(bytes_put_hex(whole + SIGNED_AT, user_id, TOKEN_USER_BYTES), expires_ms);
    sum(key, whole + SIGNED_AT, call, whole + MAC_AT);
    base64url_encode(whole, sizeof whole, text);
    buf_append(out, text, sizeof text);
}

enum proof_verdict redirect_proof_check(const struct proof_keys *keys, const char *text,
                                        uint64_t now_ms, const struct redirect_call *call,
                                        char user_id[static TOKEN_USER_CHARS + 1])
{
    unsigned char whole[WHOLE], wanted[AUTH_MAC_BYTES];
    if (strnlen(text, CHARS + 1) != CHARS || !base64url_decode(text, CHARS, whole))
        return PROOF_INVALID;
    const struct proof_key *key = proof_keys_find(keys, whole);
    if (key == NULL)
        return PROOF_INVALID;
    sum(key, whole + SIGNED_AT, call, wanted);
    if (CRYPTO_memcmp(whole + MAC_AT, wanted, sizeof wanted) != 0)
        return PROOF_INVALID;
    format_hex(whole + SIGNED_AT, TOKEN_USER_BYTES, user_id);
    return now_ms < bytes_u64(whole + SIGNED_AT + TOKEN_USER_BYTES) ? PROOF_VALID : PROOF_EXPIRED;
}
