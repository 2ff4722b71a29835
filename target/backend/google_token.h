/* What a request to Google's services is let in by: a token, which a service account gets for a
 * statement signed with its key (RFC 7523, RS256).
 *
 *   key file ─▶ statement ("JWT"), signed ─▶ token_uri ─▶ token, good for an hour or so
 *
 * The key file is the one that Google's own tools take: GOOGLE_APPLICATION_CREDENTIALS names it, of
 * the type "service_account".  It is read when a token is needed, so that a new key counts with the
 * next token.  One token serves all buckets; it is asked for anew some minutes before its end, and
 * when the service refuses it.  Neither keys nor tokens stand in a message. */
#pragma once

#include <stdint.h>

#include "common/arena.h"
#include "common/buf.h"
#include "common/error.h"

struct exchange_env;
struct google_tokens;

struct google_tokens *google_tokens_new(void);
void google_tokens_free(struct google_tokens *g); /* NULL is fine */

/* Blocks where one has to be asked for; who comes meanwhile gets its answer.  *out is the arena's.
 * E_BACKEND_DENIED without a key that can be used; the errors of a backend. */
int google_token(struct google_tokens *g, const struct exchange_env *env, struct arena *a,
                 const char **out, struct error *err);
/* The service takes it no more. */
void google_token_refused(struct google_tokens *g, const char *token);

/* --- pure ------------------------------------------------------------------------------------- */

struct google_key {
    const char *email, *key_id, *private_key, *token_uri; /* the arena's */
};

/* Of the file's text.  E_BACKEND_DENIED. */
int google_key_parse(const char *text, size_t len, struct arena *a, struct google_key *out,
                     struct error *err);
/* Adds "header.claims.signature" of a statement made at this time.  E_BACKEND_DENIED: it is no key. */
int google_key_sign(const struct google_key *key, int64_t now_s, struct buf *out,
                    struct error *err);
