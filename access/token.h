/* Bearer tokens: a client's proof of identity at any node.  Pure; fuzzed.
 *
 *     dfc1.<base64url(key id, user id, access key, issued, expires, random)>.<base64url(mac)>
 *
 * The key id is the cluster key's.  The access key is the one that the token was got with: a token
 * ends with it.  Where the user has given a password, it is the password's tag (password.h).  The
 * mac is HMAC-SHA256 with the token key (proof_keys.h) over everything before the second dot.
 * Numbers are 8 bytes, most significant first, times are Unix times in ms.  There is one algorithm
 * and no header that could name another.
 *
 * A token has no rights: every request looks them up in the document `access`. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "access/proof_keys.h"
#include "cluster/access/user.h"
#include "common/buf.h"

enum {
    TOKEN_USER_BYTES = 16, /* a user id is 32 hex digits of these */
    TOKEN_USER_CHARS = 2 * TOKEN_USER_BYTES,
    TOKEN_RANDOM_BYTES = 8,
};

struct token {
    char user[TOKEN_USER_CHARS + 1];   /* id */
    char access[ACCESS_KEY_CHARS + 1]; /* or a tag */
    uint64_t issued_ms, expires_ms;
    unsigned char random[TOKEN_RANDOM_BYTES]; /* names the token in the audit log */
};

enum proof_verdict {
    PROOF_VALID,
    PROOF_INVALID, /* malformed, of an unknown key, or changed */
    PROOF_EXPIRED,
};

/* What a token says, as bytes: a signed URL has them, too (signed_url.h). */
enum {
    TOKEN_FIELDS =
        PROOF_KEY_ID_BYTES + TOKEN_USER_BYTES + ACCESS_KEY_CHARS + 8 + 8 + TOKEN_RANDOM_BYTES
};

void token_write_fields(const struct proof_key *key, const struct token *t,
                        unsigned char out[static TOKEN_FIELDS]);
/* Is it still good? */
enum proof_verdict token_read_fields(const unsigned char fields[static TOKEN_FIELDS],
                                     uint64_t now_ms, struct token *out);

/* Appends the text. */
void token_put(const struct proof_keys *keys, const struct token *t, struct buf *out);
/* *out is filled with PROOF_VALID and PROOF_EXPIRED. */
enum proof_verdict token_check(const struct proof_keys *keys, const char *text, uint64_t now_ms,
                               struct token *out);
