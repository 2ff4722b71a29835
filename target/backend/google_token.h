/* What a request to Google's services is let in by: a token, good for an hour or so, which
 * google_source.h says where to ask for.  One token serves all buckets; it is asked for anew some
 * minutes before its end, and when the service refuses it.  Neither keys nor tokens stand in a
 * message. */
#pragma once

#include <stdint.h>

#include "common/arena.h"
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
