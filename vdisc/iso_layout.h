/* Makes a layout (iso_blocks.h) of a tree. */
#pragma once

#include "vdisc/iso_blocks.h"

/* Where a content is. */
struct iso_part {
    uint32_t extent;
    uint32_t block; /* of the extent: the first of the content */
};

struct iso_stored {
    uint32_t contents;            /* content numbers in the tree are below this */
    const struct iso_part *parts; /* of each content; NULL: extent n is content n */
    uint32_t extents;             /* extent numbers in `parts` are below this */
    const uint64_t *sizes;        /* of each extent */
};

/* The tree must outlive the layout; all else is not used afterwards.
 * E_IMAGE_TOO_LARGE: more than 2^32 - 1 blocks, a directory of 4 GiB; E_IMAGE_NAME: Joliet. */
int iso_layout_new(const struct iso_tree *t, const struct iso_stored *stored, bool joliet,
                   struct iso_layout **layout, struct error *err);
void iso_layout_free(struct iso_layout *l);
DEFINE_CLEANUP(struct iso_layout, iso_layout_free);
