/* A sample as bytes: the frame, on the wire and in a lane's log alike.  Pure.
 *
 *   0   u32 magic "DFRF"          32  u64 producer
 *   4   u32 head length           40  u64 sequence
 *   8   u64 total length          48  u64 XXH3 of the payload (head length to the end)
 *   16  u64 ordinal               56  u64 XXH3 of the head, with this field zero
 *   24  u16 kinds, u16 flags, u32 zero
 *   64  the kinds, one behind the other, then zeros up to the head length:
 *         u16 length of the name, u8 length of the dtype, u8 dimensions, u32 zero
 *         u64 offset of the bytes in the frame, u64 their number, u64 each dimension
 *         name, dtype, zeros up to a multiple of 8
 *
 * Integers are little endian.  Head length, total length and offsets are multiples of 64, so that
 * an array can be used where it is.  A sample has 1 to FRAME_KINDS_MAX kinds with different names.
 * The dtype is numpy's text ("<f4"), or "bytes" of what is no array.
 *
 * A client leaves ordinal, flags, producer and sequence zero.  The target sets them.  FRAME_ENDS is
 * on the last sample of a push: what a crash has left of a push without it does not count. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

enum {
    FRAME_FIXED = 64,
    FRAME_ALIGN = 64,
    FRAME_KINDS_MAX = 64,
    FRAME_NAME_MAX = 255,
    FRAME_DTYPE_MAX = 32,
    FRAME_DIMS_MAX = 32,
    FRAME_HEAD_MAX = 65536,
    FRAME_ENDS = 1, /* flag */
};
#define FRAME_BYTES_MAX (1ULL << 40)

struct frame {
    uint32_t head_len;
    uint64_t total;
    uint64_t ordinal, producer, sequence;
    uint16_t kinds, flags;
    uint64_t payload_sum;
};

struct frame_kind {
    const char *name, *dtype; /* not NUL-terminated */
    size_t name_len, dtype_len;
    unsigned dims;
    uint64_t shape[FRAME_DIMS_MAX];
    uint64_t offset, length; /* in the frame */
};

/* The first FRAME_FIXED bytes: the lengths are within bounds, the head's sum is not looked at.
 * E_FRAME. */
int frame_peek(const void *bytes, struct frame *out, struct error *err);
/* The whole head, of f->head_len bytes: its sum and its kinds.  E_FRAME. */
int frame_check_head(const void *head, const struct frame *f, struct error *err);
/* The i-th kind of a head that was checked. */
void frame_kind(const void *head, unsigned i, struct frame_kind *out);
uint64_t frame_sum(const void *payload, size_t len);
/* Writes ordinal, producer, sequence and flags into a head, and its new sum. */
void frame_stamp(void *head, const struct frame *f);

/* What is to be made into a frame. */
struct frame_part {
    const char *name, *dtype;
    unsigned dims;
    const uint64_t *shape;
    const void *data;
    size_t len;
};
/* Appends the frame.  E_FRAME names what is wrong. */
int frame_make(const struct frame_part *parts, unsigned count, struct buf *out, struct error *err);

/* A push: frames one behind the other, and nothing else.  Checks all of them, payloads too; the
 * number of samples.  E_FRAME says which sample; E_CHECKSUM. */
int frame_check_push(const void *bytes, size_t len, uint64_t *count, struct error *err);
