/* Proofs of redirects: what a proxy has decided, and a target may believe.  Pure; fuzzed.
 *
 * Many clients drop `Authorization` when the port changes, and a token must not follow a redirect
 * to a wrong place.  So the proxy adds `dfca` to the URL that it redirects to:
 *
 *     dfca = base64url(key id, user id, expires, mac)
 *
 * The mac is HMAC-SHA256 with the redirect key (proof_keys.h) over the user id, the time, and every
 * field of struct redirect_call with its length, or the mark that it is absent.  A proof is thus
 * good for one object of one bucket (by its id: not for a bucket made anew under the name), one
 * method, one range, one user, until it expires.  The same request may be repeated until then. */
#pragma once

#include "access/token.h"
#include "common/buf.h"

struct redirect_call {
    bool reads;         /* GET or HEAD, which are one method here; `method` does not count then */
    const char *method; /* "PUT", or what the call's route signs (struct http_route) */
    uint64_t bucket_id;
    const char *object;   /* unescaped */
    const char *offset;   /* of the query, unescaped; NULL: absent */
    const char *length;   /* the same */
    const char *range;    /* the Range header; NULL: absent */
    const char *new_name; /* of a rename; NULL: none */
    const char *member;   /* of an archive; "": the list of them; NULL: the object */
};

/* What the calls of uploads in parts sign: UPLOAD_SIGNS("DELETE").  The proof of an abort is thus
 * none for the object. */
#define UPLOAD_SIGNS(method) "upload-" method
/* The same of the calls of rings. */
#define RING_SIGNS(method) "ring-" method

/* The call as the macs of proofs have it: no two calls have the same bytes. */
void redirect_call_put(const struct redirect_call *call, struct buf *out);

/* Appends the value of `dfca`. */
void redirect_proof_put(const struct proof_keys *keys, const char *user_id, uint64_t expires_ms,
                        const struct redirect_call *call, struct buf *out);
/* The user's id is filled with PROOF_VALID and PROOF_EXPIRED. */
enum proof_verdict redirect_proof_check(const struct proof_keys *keys, const char *text,
                                        uint64_t now_ms, const struct redirect_call *call,
                                        char user_id[static TOKEN_USER_CHARS + 1]);
