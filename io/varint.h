/* Unsigned integers in 1..10 bytes, seven bits each, low ones first (LEB128). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define VARINT_MAX 10

/* Bytes written into out, which has room for VARINT_MAX. */
static inline size_t varint_put(unsigned char *out, uint64_t value)
{
    size_t n = 0;
    for (; value >= 0x80; value >>= 7)
        out[n++] = (unsigned char)(value | 0x80);
    out[n++] = (unsigned char)value;
    return n;
}

/* Bytes read, or 0 where the text is cut short or exceeds 64 bits. */
static inline size_t varint_get(const unsigned char *data, size_t len, uint64_t *value)
{
    uint64_t v = 0;
    for (size_t n = 0; n < len && n < VARINT_MAX; n++) {
        uint64_t bits = data[n] & 0x7f;
        if (n == VARINT_MAX - 1 && bits > 1)
            return 0;
        v |= bits << (7 * n);
        if ((data[n] & 0x80) == 0) {
            *value = v;
            return n + 1;
        }
    }
    return 0;
}
