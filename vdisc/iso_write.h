/* The header of an image (isohdr): the bytes of a layout, from the first block on, a piece at a
 * time.  No buffer grows with the image. */
#pragma once

#include "vdisc/iso_blocks.h"
#include "vdisc/iso_volume.h"

/* put() returns 0 or an error, which ends the writing.  The volume must have been checked. */
int iso_write(const struct iso_layout *l, const struct iso_volume *v,
              int (*put)(void *context, const void *bytes, size_t len, struct error *err),
              void *context, struct error *err);
