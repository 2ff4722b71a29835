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

/* The value of each character of the alphabet, plus one; 0: it is none of it. */
static const unsigned char values[256] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
    ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['-'] = 63, ['_'] = 64,
};

bool base64url_decode(const char *text, size_t chars, void *out)
{
    unsigned char *bytes = out;
    uint32_t bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < chars; i++) {
        unsigned value = values[(unsigned char)text[i]];
        if (value == 0)
            return false;
        bits = bits << 6 | (value - 1);
        held += 6;
        if (held >= 8) {
            held -= 8;
            *bytes++ = (unsigned char)(bits >> held);
        }
    }
    return held < 6 && (bits & ((1u << held) - 1)) == 0;
}
