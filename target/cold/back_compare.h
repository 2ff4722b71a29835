/* Are the backend's bytes under the new name of a rename those that were renamed?  For who cannot
 * know it from the new name's owner (back_after.h): the object was evicted after its upload, or has
 * been read from the backend again; or it was lost before, and the backend has an older one.
 *
 * The length is compared first.  Bytes are read whole, without keeping them, and once for each
 * entity tag: *memo remembers the one that was found to be another object's. */
#pragma once

#include <stdint.h>

#include "common/error.h"

struct back_after;
struct cold;

/* Blocks.  0: they are.  E_NOT_READY: there is nothing, or something else, or without a checksum
 * nobody can say; the backend's own errors. */
int back_compare(struct cold *c, const char *backend, const struct back_after *after,
                 uint64_t *memo, struct error *err);
