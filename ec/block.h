/* The check of a block (layout.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes EC_CHECK_BYTES behind the block. */
void ec_block_seal(unsigned char *block, size_t len, uint64_t tag, unsigned slice, uint64_t stripe);
bool ec_block_is_sound(const unsigned char *block, size_t len, uint64_t tag, unsigned slice,
                       uint64_t stripe);
