/* The checksums of an object's parts in one text, as the object's metadata has them:
 *
 *     "CRC32C:" and the values of all parts in a row, in base64url
 *
 * Parts count from 1, in the order of their bytes.  A text has room for 189 values of CRC32 and
 * CRC32C, 94 of CRC64NVME, 37 of SHA1 and 23 of SHA256.  Pure; fuzzed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "s3/sum.h"

enum {
    PART_SUMS_BYTES = 756,                            /* of all values */
    PART_SUMS_MAX = 16 + PART_SUMS_BYTES / 3 * 4 + 1, /* bytes of a text, with the end */
};

/* False: there are none, or more than the text has room for.  They are of one type. */
bool part_sums_print(const struct s3_sum_value *sums, size_t count, char out[static PART_SUMS_MAX]);

struct part_sums {
    enum s3_sum_type type;
    unsigned count;
    unsigned char bytes[PART_SUMS_BYTES];
};

/* False: the text is not one that part_sums_print() writes. */
bool part_sums_parse(const char *text, struct part_sums *out);
/* False: no part has the number. */
bool part_sums_find(const struct part_sums *sums, unsigned number, struct s3_sum_value *out);
