/* One question to a backend, with its retries, until the head of the answer is here; the body then
 * comes by a pipe.
 *
 *   exchange_begin() ─▶ request ─▶ head ── 2xx ─▶ facts, pipe ─▶ … ─▶ exchange_end()
 *                          ▲         │
 *                          └─ wait ──┴ 429, 5xx, reset, silence: again, a few times (failure.h)
 *
 * What lets us in (a token, keys that end) is fetched here, too, before the gate: who waits for it
 * takes no other's place there.  A request that is refused because it has ended is repeated once,
 * at once, with what is fetched then.
 *
 * Before a byte of the body has come a failure is repeated here; after that it is whoever reads the
 * pipe that knows what to do.  Messages name the backend's server (scheme, host, port), but no
 * URLs, which may carry a redirect's signature, nor keys.
 *
 * What is written, and lists, are asked by exchange_send(), whose answer is read whole.  Its bytes
 * come from a file, so that each try can send them anew, by a pipe: memory does not grow with them.
 *
 * Threads: both block (never in an HTTP thread or a loop). */
#pragma once

#include "common/buf.h"
#include "io/bpipe.h"
#include "target/backend/backend.h"
#include "target/backend/exchange_env.h"

/* The bucket's URL and what is wanted.  *facts and *pipe (NULL for HEAD, the caller's reference)
 * are set with 0.  Errors: failure.h's, and the URL's own. */
int exchange_begin(const struct exchange_env *env, const char *backend_url,
                   const struct backend_ask *ask, size_t pipe_bytes, struct backend_facts *facts,
                   struct bpipe **pipe, struct error *err);

/* A piece of a file that is sent. */
struct exchange_file {
    int fd;
    uint64_t offset, length;
};

struct exchange_reply {
    struct backend_facts facts;
    struct buf body; /* the caller's to end, also after an error */
    char *location;  /* of SESSION_BEGIN: the session's URL, malloc'ed; or NULL */
};

/* Any verb but BACKEND_READ.  `file` is NULL where the request has no bytes of an object.  Errors:
 * failure.h's; E_UNSUPPORTED where this backend knows no such thing; the file's. */
int exchange_send(const struct exchange_env *env, const char *backend_url,
                  const struct backend_ask *ask, const struct exchange_file *file,
                  struct exchange_reply *reply, struct error *err);
