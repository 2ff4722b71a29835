/* Fields of fixed width, one behind the other, as tokens and redirect proofs have them.  Each
 * function that writes returns the place of the next field. */
#pragma once

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "common/parse.h"

static inline unsigned char *bytes_put(unsigned char *at, const void *data, size_t len)
{
    memcpy(at, data, len);
    return at + len;
}

static inline unsigned char *bytes_put_u64(unsigned char *at, uint64_t value)
{
    for (int shift = 56; shift >= 0; shift -= 8)
        *at++ = (unsigned char)(value >> shift);
    return at;
}

/* `hex` has 2 * len digits: an id that this program made. */
static inline unsigned char *bytes_put_hex(unsigned char *at, const char *hex, size_t len)
{
    int code = parse_hex(hex, at, len, NULL);
    assert(code == 0);
    (void)code;
    return at + len;
}

static inline uint64_t bytes_u64(const unsigned char *at)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | at[i];
    return value;
}
