/* The log of a lane on a disk: what of a segment's bytes counts.  Pure but for reading.
 *
 * A segment is a file of frames (frame.h), one behind the other; its name is the ordinal of the
 * first, as 16 hexadecimal digits, and ".seg".  A push is appended by one write, and its last frame
 * has FRAME_ENDS.  After a crash the segment counts up to the end of its last whole push. */
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
    /* A whole push has these frames: called for each, in order. */
    void (*frame)(void *ctx, const struct frame *f, uint64_t offset);
    void *ctx;
    uint64_t size;
    uint64_t first; /* ordinal of the first frame */
    bool payloads;  /* compare their checksums, too */
};

/* *end: the bytes that count.  What follows them is the rest of a push that a crash has cut, or
 * damage.  An error is one of reading. */
int segment_scan(const struct segment_scan *scan, uint64_t *end, struct error *err);
