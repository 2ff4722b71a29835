/* Names with slices that somebody has found missing or damaged, in passing: a read, a scrub.
 * The owner that acts for such a name makes them
 * anew (ec_repair_name()); another target tells that one:
 *
 *   POST /v1/slices/{bucket id}?object=name
 *
 * Nobody's absence is taken for a loss: what targets may have that the map calls unreachable, or
 * that lack mountpaths, is left to the repair.
 *
 * The names are in memory, as many as MOST; one too many, or that resists, is found again by the
 * next read, scrub or repair.  A thread of its own. */
#pragma once

#include "common/error.h"
#include "ec/code.h"
#include "net/http/server.h"

struct slice_repair;
struct job_stop;
struct target;

int slice_repair_new(struct target *t, struct job_stop *stop, struct slice_repair **out,
                     struct error *err);
void slice_repair_free(struct slice_repair *m); /* NULL is fine; after its job_stop */

/* `damaged`: slices of it that are, where they are.  Any thread; does not wait. */
void slice_repair_want(struct target *t, uint64_t bucket_id, const char *name, ec_mask damaged);
/* A slice that was here is damaged, and moved aside.  Reads its attribute. */
void ec_mend_slice(struct target *t, uint64_t slices_bucket_id, const char *slice);

extern const struct http_route ec_mend_routes[];
