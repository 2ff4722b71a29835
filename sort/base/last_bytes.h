/* Byte strings put one after the other, of which many are the same as the one before: those are
 * kept once. */
#pragma once

#include <stddef.h>
#include <string.h>

#include "common/buf.h"

struct last_bytes {
    size_t offset;
    size_t len;
};

/* Where in `to` the bytes stand now. */
static inline size_t last_bytes_put(struct last_bytes *last, struct buf *to, const void *bytes,
                                    size_t len)
{
    if (len != last->len || memcmp(buf_str(to) + last->offset, bytes, len) != 0) {
        *last = (struct last_bytes){.offset = to->len, .len = len};
        buf_append(to, bytes, len);
    }
    return last->offset;
}
