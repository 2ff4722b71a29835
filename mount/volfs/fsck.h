/* The blocks that files name, and the objects of the bucket: is each there, with its size?
 *
 *     fsck_object()   each object of the bucket, after a check has seen the names
 *     fsck_compare()  with the slices of the check */
#pragma once

#include "mount/volume/check/check.h"

struct fsck {
    struct volume_format format;
    struct fsck_block {
        uint64_t slice, block, bytes;
    } * blocks;
    size_t count, room;
};

void fsck_object(struct fsck *f, const char *key, uint64_t bytes);
/* told() for each block that is missing, or has another size than it must have: the key is the one
 * it must have.  `again`: names that a later check saw; a slice that it does not name is no
 * finding, nor is one of a file that was removed.
 * Returns how many. */
size_t fsck_compare(struct fsck *f, const struct check *names, const struct check *again,
                    void (*told)(void *context, uint64_t ino, const char *key), void *context);
void fsck_done(struct fsck *f);
