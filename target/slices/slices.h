/* Slices as targets keep them for each other (ec_manifest.h has their names): written once (and
 * over themselves, where they were damaged), read in ranges.
 *
 *   PUT    /v1/slices/{bucket id}/{slice}?object=&sync=   the body
 *   GET    /v1/slices/{bucket id}/{slice}?offset=&length=&left=
 *   DELETE /v1/slices/{bucket id}/{slice}?placed=         another target has it, too
 *   GET    /v1/slices/{bucket id}?tag=&slices=&dfcv=      which of the first so many are here
 *
 * Of one that is damaged, and may be in quarantine, `left=true` gives what is left: its blocks have
 * their checks.
 *
 * Which of two equal ones goes is decided by the ranks of one map (slices/plan.h): who answers with
 * dfcv removes nothing afterwards that was decided by owners before those of that state.
 *
 * One is kept as an object of the bucket's slices, with the name of what it is a part of.  It has a
 * checksum as any object has, so that scrub, resilver and the start after a loss of power take care
 * of it. */
#pragma once

#include "net/http/server.h"

struct attr;

/* Of what a slice is a part, in its metadata; NULL: nothing says so. */
const char *ec_slice_object(const struct attr *a);

extern const struct http_route ec_slice_routes[];
