/* What lets us in to a backend and ends, keys or a token, kept for all who need it: asked for by
 * the first, used by all, and asked for anew some minutes before its end (kept_rule.h), when it has
 * ended, and when the backend refuses it.
 *
 * One asks at a time.  While the old one holds the others use it, and a renewal that fails (it is
 * asked for once, without repeats) is logged and changes nothing.  Whom the backend has refused has
 * nothing that holds, and he alone: one such request may have been refused for a reason of its own.
 *
 * Where nothing holds the question is repeated as the rules of exchanges have it, the others wait,
 * and its error is theirs, too, and for a while that of who comes afterwards.  The error of a
 * question that was not repeated (a renewal's, or of an env that repeats nothing) is nobody else's.
 *
 * Threads: any; kept_get() blocks where it asks or waits. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"

struct exchange_env;
struct kept;

struct kept_ops {
    const char *what; /* it is; for the log */
    size_t size;      /* of a value, whose bytes are copied, compared and wiped */
    /* One question, which blocks: *value (zeroed before) and when it ends, by the wall clock.
     * *again, with an error: asked once more there may be another answer. */
    int (*ask)(const struct exchange_env *env, void *value, int64_t *end_ms, bool *again,
               struct error *err);
    int64_t (*wall_ms)(void);
};

struct kept *kept_new(const struct kept_ops *ops); /* the table stays the caller's */
void kept_free(struct kept *k);                    /* NULL is fine; nobody is inside */
/* A copy for the caller, who wipes it.  refused: what the backend took no more from the caller, who
 * wants another one (it may be the same: then there is no other); or NULL.  Errors: ask's. */
int kept_get(struct kept *k, const struct exchange_env *env, const void *refused, void *value,
             struct error *err);
