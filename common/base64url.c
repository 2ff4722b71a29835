#include "common/base64url.h"

#include <stdint.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

size_t base64url_encode(const void *data, size_t len, char *out)
{
    const unsigned char *bytes = data;
    uint32_t bits = 0;
    unsigned held = 0;
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        bits = bits << 8 | bytes[i];
        for (held += 8; held >= 6; held -= 6)
            out[n++] = alphabet[bits >> (held - 6) & 63];
    }
    if (held > 0)
        out[n++] = alphabet[bits << (6 - held) & 63];
    return n;
}

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '-' ? 62 : c == '_' ? 63 : -1;
}

bool base64url_decode(const char *text, size_t chars, void *out)
{
    unsigned char *bytes = out;
    uint32_t bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < chars; i++) {
        int value = value_of(text[i]);
        if (value < 0)
            return false;
        bits = bits << 6 | (unsigned)value;
        held += 6;
        if (held >= 8) {
            held -= 8;
            *bytes++ = (unsigned char)(bits >> held);
        }
    }
    return held < 6 && (bits & ((1u << held) - 1)) == 0;
}
