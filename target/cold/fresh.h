/* Before what is here of a backend's object is served: is it still what the backend has
 * (fresh_rule.h)?
 *
 *   GET ─▶ store ── here, due ─▶ question ─┬─ 304 ─────▶ served from here
 *                                          ├─ changed ─▶ as for one that is not here (cold.h); the
 *                                          │             fetch takes the old one's place
 *                                          ├─ gone ────▶ removed here; 404
 *                                          └─ silence ─▶ served from here with `Dfc-Stale: true`,
 * or the error, by the bucket's `stale`
 *
 * One question at a time for each object: who comes while it is under way gets its answer, too.
 * After a question that went unanswered none is asked of that bucket's backend for backend_pause,
 * where stale objects may be served: an epoch does not wait for a timeout at every file.
 *
 * When an object was asked about last is kept in memory, in a table of bounded size: what has been
 * pushed out of it, or forgotten with a restart, is asked about once more. */
#pragma once

#include <stdbool.h>

#include "target/cold/fresh_rule.h"

struct attr;
struct bucket;
struct error;
struct cold_fresh;
struct object_call;
struct target;

struct cold_fresh *cold_fresh_new(struct target *t);
void cold_fresh_free(struct cold_fresh *f); /* no question is under way; NULL is fine */

/* Does the call have to wait for an answer of the backend?  Quick. */
bool cold_fresh_is_due(const struct object_call *call, const struct attr *a);
/* Asks; the call is replied to then.  Its attribute is not needed any more when this returns. */
void cold_fresh_ask(struct object_call *call, const struct attr *a);

/* For a job, which may wait: of an object that is here and due; what is gone has been removed. With
 * UNKNOWN and REFUSED *err says why. */
enum freshness cold_fresh_of_url(struct target *t, const char *url, const struct attr *a,
                                 struct error *err); /* … of a download */
enum freshness cold_fresh_now(struct target *t, const struct bucket *b, const struct attr *a,
                              struct error *err);
