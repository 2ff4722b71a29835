/* Making members of a tar: what a format that is no tar turns its own into.  The same member always
 * has the same bytes: owner 0:0 without names, ustar, and an extended header before it where path
 * or link exceed 100 bytes, the size 8 GiB, or the time what eleven octal digits hold.  Pure. */
#pragma once

#include <stdint.h>

#include "common/buf.h"
#include "sort/base/codec.h"

struct tar_made {
    const char *path;
    size_t path_len;
    const char *link; /* of a symbolic link */
    size_t link_len;
    char type; /* '0', '2', '5' */
    uint64_t size;
    uint32_t mode;
    int64_t mtime; /* seconds */
};

/* Appends everything before the contents. */
void tar_make_headers(struct buf *out, const struct tar_made *m);
/* After `size` bytes of contents. */
int tar_put_padding(struct sink tar, uint64_t size, struct error *err);
int tar_put_end(struct sink tar, struct error *err);
