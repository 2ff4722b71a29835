/* Entries in layers: an image, what is removed from it, what is put in its place.  Pure.
 *
 * A path has what the highest layer with this path says.  What is no directory hides everything
 * below it of lower layers.  A directory that only has something below it counts, too: a file of a
 * lower layer at its path is hidden. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct layer_entry {
    const char *path; /* clean: iso_path_clean() */
    uint8_t layer;
    bool directory; /* it may have something below it */
    bool removal;   /* it is no entry: the path and everything below it are removed */
};

/* keep[i]: entry i is in the image.  Two of one layer with one path are both kept.  The first
 * removal that removes nothing, or SIZE_MAX. */
size_t layers_apply(const struct layer_entry *entries, size_t count, bool *keep);
