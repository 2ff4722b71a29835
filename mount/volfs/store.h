/* Where the blocks of a volume are: a bucket, or in tests something else; and the cache group
 * before it, if there is one. */
#pragma once

#include "mount/data/buffer.h"

struct group_reader;

/* 0 or -errno.  Any thread may call. */
struct volfs_store {
    struct data_store reads;    /* without the group */
    struct group_reader *group; /* NULL: none.  Borrowed, as the rest */
    void *context;
    int (*put)(void *context, const char *key, const void *data, size_t size);
    int (*remove)(void *context, const char *key); /* ENOENT is fine */
};
