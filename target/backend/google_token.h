/* What a request to Google's services is let in by: a token, good for an hour or so, which
 * google_source.h says where to ask for.  One token serves all buckets (kept.h).  Neither keys nor
 * tokens stand in a message. */
#pragma once

#include "common/arena.h"
#include "common/error.h"
#include "target/backend/kept.h"

struct kept *google_tokens_new(void); /* kept_free() */

/* *out is the arena's.  refused: what the service took no more (kept.h), or NULL.  E_BACKEND_DENIED
 * without a key that can be used; a backend's errors. */
int google_token(struct kept *tokens, const struct exchange_env *env, struct arena *a,
                 const char *refused, const char **out, struct error *err);
