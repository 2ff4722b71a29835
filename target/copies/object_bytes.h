/* All bytes of an object, in order, wherever they are: in its file, or in slices that other targets
 * have (slices/source.h).  For who copies objects, in a thread that may wait; GET has ways of its
 * own.
 */
#pragma once

#include "ec/read.h"
#include "target/store/object.h"

struct target;

/* What users see of it: the object's length and checksum, also where the file is a manifest of
 * slices. The texts borrow from `o`. */
int object_bytes_attr(const struct object *o, struct attr *out, struct error *err);

/* `o` is open.  What take() says ends it.  E_NODE_UNREACHABLE, E_CORRUPT where too few slices are
 * to be had. */
int object_bytes_each(struct target *t, uint64_t bucket_id, const struct object *o,
                      ec_take_fn *take, void *ctx, struct error *err);
