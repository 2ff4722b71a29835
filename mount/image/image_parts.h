/* What the files of mount/image/ share. */
#pragma once

#include "mount/image/image.h"
#include "mount/image/objects.h"
#include "mount/image/places.h"
#include "vdisc/client/image.h"

struct image {
    struct image_options options;
    struct vdisc *vdisc; /* its table alone */
    struct objects objects;
    struct places places;
    struct iso_reader reader; /* over the metadata buffer */
};

/* The entry of a node: 0 or -errno. */
int image_entry_of(struct image *im, uint64_t node, struct iso_found *out);
void image_stat(uint64_t node, const struct iso_found *f, struct stat *st);
/* What a function of the reader returned, as -errno; it is logged. */
int image_error(const struct image *im, const struct error *e);
