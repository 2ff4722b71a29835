/* The CRC of bytes out of the CRCs of their pieces, without the bytes (zlib's crc32_combine(), for
 * each CRC of S3).  Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "s3/sum.h"

/* Is it a CRC? */
bool s3_sum_combines(enum s3_sum_type type);
/* *sum, of some bytes, becomes that of these and `len` further bytes, whose CRC is `next`.  Both
 * are of one type, which combines. */
void s3_sum_combine(struct s3_sum_value *sum, const struct s3_sum_value *next, uint64_t len);
