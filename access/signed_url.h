/* Signed URLs: one call for whoever has the URL, in the name of the user who asked for it.  Pure;
 * fuzzed.
 *
 *     http://PROXY/v1/objects/BUCKET/OBJECT?dfcu=…
 *     dfcu = base64url(a token's fields, mac)
 *
 * The mac is HMAC-SHA256 with the url key (proof_keys.h) over the fields (token.h) and the call
 * (redirect_proof.h).  So a signed URL is a token for one method of one object of one bucket, in
 * whole, until it expires.
 *
 * It leads to a proxy, which looks up the user's rights as it does for a token, and adds a redirect
 * proof where it redirects.  A target takes no signed URL: an hour later the object can be at
 * another one. */
#pragma once

#include "access/redirect_proof.h"
#include "access/token.h"

/* Appends the value of `dfcu`. */
void signed_url_put(const struct proof_keys *keys, const struct token *t,
                    const struct redirect_call *call, struct buf *out);
/* *out is filled with PROOF_VALID and PROOF_EXPIRED. */
enum proof_verdict signed_url_check(const struct proof_keys *keys, const char *text,
                                    uint64_t now_ms, const struct redirect_call *call,
                                    struct token *out);
