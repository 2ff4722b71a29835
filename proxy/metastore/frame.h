/* The framing of the metastore's files: a row of framed records, each
 *
 *     u32 length | u32 crc32c of the other 20 bytes of this header | u64 sequence |
 *     u32 crc32c of the data | u32 zero | length bytes of data (JSON: no NUL in it)
 *
 * little-endian.  Pure; fuzzed.
 *
 * A file that was cut while its last record was being written ends in a *torn* record: its bytes
 * stop, or what the disk never got reads as zeros (at least to the next 512-byte boundary: the unit
 * in which disks write).  Anything else that does not check is *damaged*: it was whole once, and
 * dropping it would lose what was acknowledged. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

enum { FRAME_HEADER_BYTES = 24 };

struct frame {
    uint64_t sequence;
    const char *data;
    size_t len;
    size_t end; /* where the next one begins */
};

enum frame_status { FRAME_OK, FRAME_END, FRAME_TORN, FRAME_DAMAGED };

void frame_put(struct buf *out, uint64_t sequence, const void *data, size_t len);
/* The record at `offset` of a file of `size` bytes.  With FRAME_TORN and FRAME_DAMAGED *why is a
 * few words. */
enum frame_status frame_get(const char *file, size_t size, size_t offset, struct frame *out,
                            const char **why);
