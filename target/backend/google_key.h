/* The key of a service account, as its file has it, and what is signed with it (RFC 7523, RS256).
 * Pure; neither stands in a message. */
#pragma once

#include <stdint.h>

#include "common/arena.h"
#include "common/buf.h"
#include "common/error.h"

struct google_key {
    const char *email, *key_id, *private_key, *token_uri; /* the arena's */
};

/* Of the file's text.  E_BACKEND_DENIED. */
int google_key_parse(const char *text, size_t len, struct arena *a, struct google_key *out,
                     struct error *err);
/* Adds "header.claims.signature" of a statement made at this time.  E_BACKEND_DENIED: no key. */
int google_key_sign(const struct google_key *key, int64_t now_s, struct buf *out,
                    struct error *err);
