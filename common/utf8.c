#include "common/utf8.h"

/* Table 3-7 of the Unicode standard: which second byte may follow a lead byte.  Every further
 * byte is 80..BF. */
static const struct utf8_row {
    unsigned char first_low, first_high;
    unsigned char second_low, second_high;
    unsigned char length;
} utf8_rows[] = {
    {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
    {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
    {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
};

static bool utf8_fits(const struct utf8_row *row, const unsigned char *s, size_t len)
{
    if (s[0] < row->first_low || s[0] > row->first_high || len < row->length)
        return false;
    if (s[1] < row->second_low || s[1] > row->second_high)
        return false;
    for (size_t i = 2; i < row->length; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return false;
    }
    return true;
}

size_t utf8_sequence(const char *text, size_t len)
{
    const unsigned char *s = (const unsigned char *)text;
    if (len == 0)
        return 0;
    if (s[0] < 0x80)
        return 1;
    for (size_t i = 0; i < sizeof utf8_rows / sizeof utf8_rows[0]; i++) {
        if (utf8_fits(&utf8_rows[i], s, len))
            return utf8_rows[i].length;
    }
    return 0;
}

uint32_t utf8_character(const char *text, size_t sequence)
{
    const unsigned char *at = (const unsigned char *)text;
    if (sequence == 1)
        return at[0];
    uint32_t c = at[0] & (0xffu >> (sequence + 1));
    for (size_t i = 1; i < sequence; i++)
        c = c << 6 | (at[i] & 0x3fu);
    return c;
}

bool utf8_valid(const char *text, size_t len)
{
    for (size_t at = 0; at < len;) {
        size_t step = utf8_sequence(text + at, len - at);
        if (step == 0 || text[at] == '\0')
            return false;
        at += step;
    }
    return true;
}
