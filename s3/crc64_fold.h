/* CRC-64/NVME of many bytes by carry-less multiplication, for crc64.c.
 *
 * Bytes are folded: 64 bytes are replaced by their remainder, brought forward to the next 64, until
 * 16 bytes are left that have the CRC of all ("Fast CRC Computation for Generic Polynomials Using
 * PCLMULQDQ Instruction", Gopal and others, Intel 2009).  Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CRC64_FOLD_BLOCK = 64, CRC64_FOLD_LEFT = 16 };

/* Whether this processor has the instruction. */
bool crc64_fold_can(void);
/* Folds `blocks` (at least 1) of CRC64_FOLD_BLOCK bytes; `crc` is the register before them.  A
 * register of 0 that takes the bytes in `left` has the value that one takes from all blocks.  Only
 * where crc64_fold_can(). */
void crc64_fold(uint64_t crc, const unsigned char *data, size_t blocks,
                unsigned char left[static CRC64_FOLD_LEFT]);
