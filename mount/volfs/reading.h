/* Bytes of extents: they are in the buffer, or fetched into it. */
#pragma once

#include "mount/data/readahead.h"
#include "mount/volfs/volfs.h"

/* A part of an extent, within one block. */
struct reading_part {
    struct entity *entity; /* a reference */
    uint64_t in_block;
    size_t size;
};
/* The part that begins at `done`, and ends within `length`.  0 or -errno. */
int reading_part(struct volfs *v, const struct volume_extent *x, uint64_t done, uint64_t length,
                 struct reading_part *p);

/* The first `length` bytes of the extent.  0 or -errno; r: whether the reader is interrupted. */
int reading_extent(struct volfs *v, const struct volfs_range *r, const struct volume_extent *x,
                   uint64_t length, char *to);
/* The blocks of both spans of the file are fetched side by side.  What cannot be asked for is an
 * error of the read that needs it. */
void reading_request(struct volfs *v, const struct volume_extent *extents, size_t count,
                     struct span wanted, struct span ahead);
