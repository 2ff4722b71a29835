/* What nodes prove to one another, and operators to nodes, and with which bytes.  Pure:
 * tests/reference/authref.py computes the same with nothing but Python's hmac and hashlib, and the
 * test vectors come from there.
 *
 *     secret    HMAC-SHA256("dfc-key-1", text of the key)           (cluster_key.h)
 *     hello     HMAC-SHA256(secret, "dfc-hello-2\n" lines)          the caller's proof
 *     welcome   HMAC-SHA256(secret, "dfc-welcome-1\n" lines)        the answer's
 *     session   HKDF-SHA256(secret, salt: both nonces, info: "dfc-session-1\n" lines): 32 bytes
 *     request   HMAC-SHA256(session key, "dfc-request-1\n" lines)
 *
 * A line is a text without a line feed, and one line feed.  The lines of the first three are those
 * of struct auth_greeting in its order, nonces and session in hex.  The hello has the other side's
 * node, and its challenge as the other side's nonce; the lines of the other side's boot and of the
 * session are empty.  The release before this one has no challenges: its hello begins with
 * "dfc-hello-1\n", and all four lines of the other side are empty.  The lines of a request:
 * session, counter, method, path and query as they stand in the request line, length of the body
 * (-1: unknown), digest, and then "name: value" of each header that begins with Dfc- (but
 * Dfc-Auth), the name in small letters, in the order in which they are sent.
 *
 * The digest is SHA-256 of the body in hex, or "-": no body, or a stream.  A stream is bound to its
 * opening request by its length and by the connection, and not by its bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

enum {
    AUTH_MAC_BYTES = 32,
    AUTH_NONCE_BYTES = 32,
    AUTH_SESSION_BYTES = 16,
    AUTH_HEX_MAX = 2 * AUTH_MAC_BYTES + 1,
};

struct auth_greeting {
    const char *key_id;
    const char *client_node, *client_boot, *client_nonce;
    const char *server_node, *server_boot, *server_nonce;
    const char *session;
};

void auth_hmac(const void *key, size_t key_len, const void *data, size_t len,
               unsigned char out[AUTH_MAC_BYTES]);
/* RFC 5869 with 32 bytes of output. */
void auth_hkdf(const void *key, size_t key_len, const void *salt, size_t salt_len, const void *info,
               size_t info_len, unsigned char out[AUTH_MAC_BYTES]);
void auth_digest(const void *data, size_t len, char hex[AUTH_HEX_MAX]);

/* With server_nonce NULL the earlier release's. */
void auth_hello_proof(const unsigned char *secret, const struct auth_greeting *g,
                      char hex[AUTH_HEX_MAX]);
void auth_welcome_proof(const unsigned char *secret, const struct auth_greeting *g,
                        char hex[AUTH_HEX_MAX]);
void auth_session_key(const unsigned char *secret, const struct auth_greeting *g,
                      unsigned char out[AUTH_MAC_BYTES]);

struct auth_request {
    const char *session;
    uint64_t counter;
    const char *method, *path, *query;
    int64_t length;
    const char *digest;
};

/* The lines of a request: first this, then each header (those that do not count are passed over).
 */
void auth_request_text(const struct auth_request *r, struct buf *out);
void auth_header_text(const char *name, const char *value, size_t value_len, struct buf *out);
/* The MAC of those lines. */
void auth_request_mac(const unsigned char *session_key, const struct buf *text,
                      char hex[AUTH_HEX_MAX]);

/* In a time that does not depend on where they differ. */
bool auth_same(const char *a, const char *b);
