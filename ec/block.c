#include "ec/block.h"

#include <string.h>
#include <xxhash.h>

#include "ec/layout.h"

static XXH64_canonical_t check_of(const unsigned char *block, size_t len, uint64_t tag,
                                  unsigned slice, uint64_t stripe)
{
    XXH64_canonical_t out;
    /* A stripe number has 56 bits at most, a slice's 8. */
    uint64_t seed = tag ^ (stripe << 8 | slice);
    XXH64_canonicalFromHash(&out, XXH3_64bits_withSeed(block, len, seed));
    return out;
}

void ec_block_seal(unsigned char *block, size_t len, uint64_t tag, unsigned slice, uint64_t stripe)
{
    XXH64_canonical_t check = check_of(block, len, tag, slice, stripe);
    memcpy(block + len, check.digest, EC_CHECK_BYTES);
}

bool ec_block_is_sound(const unsigned char *block, size_t len, uint64_t tag, unsigned slice,
                       uint64_t stripe)
{
    XXH64_canonical_t check = check_of(block, len, tag, slice, stripe);
    return memcmp(block + len, check.digest, EC_CHECK_BYTES) == 0;
}
