/* Where the bytes of an object are in its slices: pure arithmetic.
 *
 * An object is cut into stripes of k * unit bytes; of each stripe slice i < k has the i-th unit,
 * and slices k..k+m-1 have parity.  The last stripe's units are shorter: so many bytes that k of
 * them hold the rest, rounded up to EC_GRAIN; what is behind the object's end is zeros.  In a
 * slice's file each unit, a *block*, is followed by its check:
 *
 *     slice    block 0 | check | block 1 | check | … | last block, shorter | check
 *
 *     check    8 bytes: XXH3-64, canonical, of the block, its seed made of tag, slice and stripe: a
 * block of another object, slice or place is none
 *
 * So every slice has the same length, a range is read and checked block by block, and an object
 * without bytes has slices without bytes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

enum {
    EC_DATA_MAX = 32,
    EC_PARITY_MAX = 8,
    EC_SLICES_MAX = EC_DATA_MAX + EC_PARITY_MAX,
    EC_GRAIN = 64, /* bytes of a unit are a multiple of these */
    EC_UNIT_MAX = 4 << 20,
    EC_UNIT_DEFAULT = 64 << 10,
    EC_CHECK_BYTES = 8,
};
#define EC_LENGTH_MAX (UINT64_C(1) << 56)

struct ec_layout {
    unsigned k, m;
    uint32_t unit;   /* bytes */
    uint64_t length; /* of the object */
};

/* E_INVALID naming what is out of bounds. */
int ec_layout_check(const struct ec_layout *l, struct error *err);

uint64_t ec_layout_stripes(const struct ec_layout *l);
/* Bytes of a block of this stripe, without its check. */
uint32_t ec_layout_block(const struct ec_layout *l, uint64_t stripe);
/* Bytes of every slice's file. */
uint64_t ec_layout_slice_bytes(const struct ec_layout *l);
/* Where in a slice's file the block of a stripe begins. */
uint64_t ec_layout_block_at(const struct ec_layout *l, uint64_t stripe);

/* A piece of a range that lies in one block. */
struct ec_piece {
    uint64_t stripe;
    unsigned slice;
    uint32_t at, len; /* in the block */
};
/* The piece that begins with this byte of the object, cut off at `end` (exclusive): offset < end <=
 * length. */
struct ec_piece ec_layout_piece(const struct ec_layout *l, uint64_t offset, uint64_t end);
