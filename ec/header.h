/* What a slice says of itself, beside its bytes (in an extended attribute of its file, README.md):
 * all that is needed to read the object from any k of them, and to refuse what does not go
 * together.
 *
 * Layout (numbers little-endian): u8 format, 1; u8 k; u8 m; u8 index; u32 unit; u64 length; u64
 * term, map, counter of the object's version; u64 tag; u8 type of the object's checksum, and
 * CHECKSUM_MAX bytes of it, zeros behind it; u64 XXH3-64 of the checks of the slice's blocks; u64
 * XXH3-64 of all that stands before. */
#pragma once

#include <stdint.h>

#include "common/checksum.h"
#include "ec/layout.h"

enum { EC_HEADER_BYTES = 4 + 4 + 8 + 3 * 8 + 8 + 1 + CHECKSUM_MAX + 8 + 8 };

struct ec_header {
    struct ec_layout layout;
    unsigned index;               /* of this slice */
    uint64_t term, map, counter;  /* the object's version */
    uint64_t tag;                 /* of its blocks: ec_tag() */
    struct checksum_value object; /* CHECKSUM_NONE: none */
    uint64_t slice_sum;           /* of this slice: XXH3-64 of its blocks' checks */
};

/* Made of what no other object has: bucket, name and version. */
uint64_t ec_tag(uint64_t bucket_id, const char *name, uint64_t term, uint64_t map,
                uint64_t counter);

void ec_header_encode(const struct ec_header *h, unsigned char out[static EC_HEADER_BYTES]);
/* E_CORRUPT; E_UNSUPPORTED where a newer release wrote it. */
int ec_header_decode(const unsigned char *data, size_t len, struct ec_header *h, struct error *err);

/* May these two be of one object?  E_CORRUPT naming the first thing that differs, or the index that
 * is there twice. */
int ec_header_match(const struct ec_header *a, const struct ec_header *b, struct error *err);
/* Has its file the length that it must have?  E_CORRUPT. */
int ec_header_check_file(const struct ec_header *h, uint64_t file_bytes, struct error *err);
