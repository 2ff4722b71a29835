/* The log of a lane on a disk: what of a segment's bytes counts.  Pure but for reading.
 *
 * A segment is a file of frames (frame.h), one behind the other; its name is the ordinal of the
 * first, as 16 hexadecimal digits, and ".seg".  A push is appended by one write, and its last frame
 * has FRAME_ENDS.
 *
 * Bytes that are no frame may be a push that a crash has cut, or damage.  It is damage if a whole
 * push follows in the segment, or another segment does: a push is written when the one before it
 * was, and a segment begins when the one before it is on the disk.  Damage takes the samples whose
 * bytes it has; the others count.  A push that was cut does not count at all.  The first 64 bytes
 * of a sample say whether its push ends with it: where they are damaged, the next push is not known
 * to be whole, and counts only if another one follows.
 *
 *   | push | push, damaged | push | push | a rest without a whole push |
 *   '------ counts, but for the damaged samples ------' *end
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "ring/frame.h"

enum { SEGMENT_NAME_MAX = 24 };

/* "00000000000003e8.seg" */
void segment_name(uint64_t first, char out[static SEGMENT_NAME_MAX]);
bool segment_name_parse(const char *name, uint64_t *first);

struct segment_scan {
    /* Exactly len bytes at `offset`, which are within `size`. */
    int (*read)(void *ctx, void *out, size_t len, uint64_t offset, struct error *err);
    /* Each frame that counts, in order.  Ordinals that are passed over are of damaged samples.
     * is_of_whole: no sample of its push is damaged. */
    void (*frame)(void *ctx, const struct frame *f, uint64_t offset, bool is_of_whole);
    void *ctx;
    uint64_t size;
    uint64_t first;   /* ordinal of the first frame */
    bool payloads;    /* compare their checksums, too */
    bool is_followed; /* by another segment: nothing of it was cut */
};

/* *end: where the last whole push ends.  What follows is the rest of a push that a crash has cut,
 * or damage.  An error is one of reading. */
int segment_scan(const struct segment_scan *scan, uint64_t *end, struct error *err);
