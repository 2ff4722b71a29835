/* The code: Reed-Solomon over GF(2^8) with a Cauchy matrix, as ISA-L has it.  Any k of the k + m
 * blocks of a stripe give all the others.  The matrix is of the disk format: it never changes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "ec/layout.h"

/* Which slices: bit i is slice i. */
typedef uint64_t ec_mask;

struct ec_code; /* for one (k, m); one thread at a time */

struct ec_code *ec_code_new(unsigned k, unsigned m);
void ec_code_free(struct ec_code *c);

/* blocks[0..k) are read, blocks[k..k+m) are made. */
void ec_code_parity(const struct ec_code *c, unsigned char *const *blocks, size_t len);
/* Makes the blocks of `want` out of those of `have`, which are exactly k; both by slice. */
void ec_code_restore(struct ec_code *c, ec_mask have, ec_mask want, unsigned char *const *blocks,
                     size_t len);
