/* One question to a backend, with its retries, until the head of the answer is here; the body then
 * comes by a pipe.
 *
 *   exchange_begin() ─▶ request ─▶ head ── 2xx ─▶ facts, pipe ─▶ … ─▶ exchange_end()
 *                          ▲         │
 *                          └─ wait ──┴ 429, 5xx, reset, silence: again, a few times (failure.h)
 *
 * Before a byte of the body has come a failure is repeated here; after that it is whoever reads the
 * pipe that knows what to do.  Messages name neither URLs, which may carry a redirect's signature,
 * nor keys.
 *
 * Threads: exchange_begin() blocks (never in an HTTP thread or a loop). */
#pragma once

#include "io/bpipe.h"
#include "target/backend/backend.h"
#include "target/backend/failure.h"

struct exchange;

/* What exchanges share. */
struct exchange_env {
    struct http_client *client;
    struct failure_rules rules;
    void *ctx;
    /* Waits so long, unless the node stops: then false, at once. */
    bool (*wait)(void *ctx, uint64_t ms);
};

/* The bucket's URL and what is wanted.  *facts and *pipe (NULL for HEAD, the caller's reference)
 * are set with 0.  Errors: failure.h's, and the URL's own. */
int exchange_begin(const struct exchange_env *env, const char *backend_url,
                   const struct backend_ask *ask, size_t pipe_bytes, struct backend_facts *facts,
                   struct bpipe **pipe, struct error *err);
