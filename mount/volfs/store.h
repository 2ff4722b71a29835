/* Where the blocks of a volume are: a bucket, or in tests something else. */
#pragma once

#include "mount/data/buffer.h"

/* 0 or -errno.  Any thread may call. */
struct volfs_store {
    struct data_store reads;
    void *context;
    int (*put)(void *context, const char *key, const void *data, size_t size);
    int (*remove)(void *context, const char *key); /* ENOENT is fine */
};
