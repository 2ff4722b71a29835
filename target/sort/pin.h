/* Pinning one input of a sort (sort/pins.h): the object as a GET would be answered from it.  Of one
 * in slices (ec_manifest.h) a file of its bytes is made where the link would be.
 *
 * Of several copies the first owner that takes part pins its own, once all that was acknowledged is
 * here, be it the one that acts or not (one that the job went on without may be back): before it
 * looks at lists it waits for its repair; a name that is not settled, and one whose bytes it has
 * lost, it has compared, and looks again.  Waits; E_ABORTED when the job is stopped. */
#pragma once

#include "common/error.h"
#include "target/sort/part.h"

struct object;
struct pin_set;
int sort_pin_wait_for_repair(const struct sort_part *p, struct error *err);
/* By a link, or in a set (disk/pin_set.h) where that is not NULL.  Of *o the size is that of its
 * bytes; o->fd is open, or -1.  E_OBJECT_NOT_FOUND: there is no such object; E_NO_SPACE for those
 * of one in slices. */
int sort_pin(const struct sort_part *p, struct pin_set *set, const char *name,
             const char *link_name, struct object *o, struct error *err);
