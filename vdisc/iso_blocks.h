/* Which block of an image has what, without any byte of it.
 *
 *     0    system area, zero              then   terminator
 *    16    primary volume descriptor             path tables, little and big endian, by view
 *    17    Joliet's, if asked                    directories of each view, level by level,
 *                                                each followed by its continuations
 *                                         then   contents, in the path order of their first file
 *
 * What is before the contents is the header of the image (isohdr). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "vdisc/iso_tree.h"
#include "vdisc/iso_view.h"

/* The bytes that files with one content number share. */
struct iso_content {
    uint64_t size;
    uint32_t lba;
    bool used;
};

/* An object of the image: the blocks of one content, or of several. */
struct iso_extent {
    uint64_t size;
    uint32_t lba;
    uint32_t blocks; /* an empty one has one, as in the reference's images */
    bool used;
};

struct iso_layout {
    const struct iso_tree *tree;
    struct iso_view views[2];
    unsigned view_count;
    uint32_t header_blocks;
    uint32_t blocks; /* of the whole image */
    struct iso_content *contents;
    uint64_t content_bytes; /* of all contents that are used */
    struct iso_extent *extents;
    uint32_t *extent_order; /* extent numbers by address */
    uint32_t extent_count;  /* in extent_order */
    /* What some readers do not take: */
    uint32_t many_sections; /* files of more than ISO_SECTIONS_LINUX sections */
    uint32_t
        far_parents; /* directories whose parent's number is beyond the 16 bits of a path table */
};
