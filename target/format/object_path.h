/* Where on its mountpath an object's file is: obj/<bucket id>/<xx>/<hash>, the hash being XXH3-128
 * of the name with the bucket id as seed, in hex, and xx its first two digits.  Names never touch
 * the file system, so nothing in a name can leave its bucket. */
#pragma once

#include <stdint.h>

enum {
    OBJECT_PATH_MAX = 20 + 1 + 2 + 1 + 32 + 1,
    OBJECT_FANS = 256, /* directories of a bucket */
};

struct object_path {
    char text[OBJECT_PATH_MAX]; /* "7/3f/3f09…": below obj/ */
    uint8_t dir_len;            /* of "7/3f" */
    uint8_t fan;                /* 0x3f */
};

void object_path_set(struct object_path *p, uint64_t bucket_id, const char *name);
