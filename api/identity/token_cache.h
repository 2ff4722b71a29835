/* Tokens that outlive a process, so that not every command of dfcctl logs in.
 *
 *     $XDG_CACHE_HOME/dfc/NAME.json, without it ~/.cache/dfc/NAME.json     mode 0600
 *     {"http://10.0.0.1:8080": {"token": "dfc1.…", "renew_ms": 1, "expires_ms": 2}, …}
 *
 * NAME is an HMAC of the access key under the secret: a token is found with its very secret alone,
 * and the name tells neither.  The keys are endpoints as the client was given them.
 *
 * A cache may fail: what cannot be read counts as missing, and what cannot be written is left out.
 * The client then logs in, and says what is wrong there.  Times are of clock_wall_ms(). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/identity/secret.h"

struct token_cache {
    char *path; /* NULL: nothing is kept */
    char *endpoints;
};

struct kept_token {
    char *text; /* to be freed with secret_free() */
    uint64_t renew_ms, expires_ms;
};

void token_cache_init(struct token_cache *t, const char *endpoints, const char *access,
                      const char *secret);
void token_cache_done(struct token_cache *t);

/* Is there one that has not ended at now_ms? */
bool token_cache_get(const struct token_cache *t, uint64_t now_ms, struct kept_token *out);
/* Tokens of other endpoints stay if they have not ended. */
void token_cache_put(const struct token_cache *t, uint64_t now_ms, const struct kept_token *token);
/* The token of these endpoints, if it is this one. */
void token_cache_drop(const struct token_cache *t, const char *text);
/* All of this key. */
void token_cache_remove(const char *access, const char *secret);
