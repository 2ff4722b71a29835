/* What lets us in to a backend and ends, keys or a token, kept for all who need it: asked for by
 * the first, used by all, and asked for anew some minutes before its end (kept_rule.h), when it has
 * ended, and when the backend refuses it.
 *
 * One asks at a time.  While the old one holds the others use it, and a question that fails (one is
 * asked, without repeats) is logged and changes nothing; when nothing is there the question is
 * repeated as the rules of exchanges have it, the others wait, and its error is theirs, too.
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
/* A copy for the caller, who wipes it.  Errors: ask's. */
int kept_get(struct kept *k, const struct exchange_env *env, void *value, struct error *err);
/* The backend takes this one no more: if it is the one that is kept, it is forgotten. */
void kept_refused(struct kept *k, const void *value);
