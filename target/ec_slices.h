/* Slices as targets keep them for each other (ec_manifest.h has their names): written once (and over
 * themselves, where they were damaged), read in ranges.
 *
 *   PUT    /v1/slices/{bucket id}/{slice}?object=&sync=   the body
 *   GET    /v1/slices/{bucket id}/{slice}?offset=&length=
 *   DELETE /v1/slices/{bucket id}/{slice}                 another target has it, too
 *   GET    /v1/slices/{bucket id}?tag=&slices=            which of the first so many are here
 *
 * One is kept as an object of the bucket's slices, with the name of what it is a part of.  It has a
 * checksum as any object has, so that scrub, resilver and the start after a loss of power take care
 * of it. */
#pragma once

#include "cluster/state.h"
#include "common/error.h"
#include "ec/code.h"
#include "net/http_server.h"
#include "target/ec_plan.h"

struct target;

struct attr;

/* Of what a slice is a part, in its metadata; NULL: nothing says so. */
const char *ec_slice_object(const struct attr *a);

/* "http://…/v1/slices/7/00f3….1?"; the caller's to free. */
char *ec_slice_url(const struct node *n, uint64_t bucket_id, uint64_t tag, unsigned index);
/* The same with what a PUT needs. */
char *ec_slice_put_url(const struct node *n, const struct bucket *b, uint64_t tag, unsigned index,
                       const char *object);

/* Has the target remove it.  Waits. */
int ec_slice_delete(struct target *t, const struct node *n, uint64_t bucket_id, uint64_t tag,
                    unsigned index, struct error *err);

/* Asks every target of the map that is not unreachable which slices it has, side by side.  *found:
 * as many as the map has targets, those that rank first for the name first; the caller's to free.
 * Waits. */
size_t ec_slices_find(struct target *t, const struct cluster_state *s, uint64_t bucket_id,
                      const char *name, uint64_t tag, unsigned slices, struct ec_found **found);

extern const struct http_route ec_slice_routes[];
