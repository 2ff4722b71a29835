#include "common/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

/* The definition, written the other way round: encode every code point and look whether the text
 * is one of the results. */
static size_t encode(uint32_t point, char out[static 4])
{
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t len = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = len; i-- > 1; point >>= 6)
        out[i] = (char)(0x80 | (point & 0x3f));
    out[0] = (char)(leads[len] | point);
    return len;
}

static void every_code_point_is_valid_but_the_surrogates(void **state)
{
    (void)state;
    for (uint32_t point = 0; point < 0x120000; point++) {
        char text[4];
        size_t len = encode(point, text);
        bool good = point < 0x110000 && (point < 0xd800 || point > 0xdfff);
        if (utf8_sequence(text, len) != (good ? len : 0))
            fail_msg("U+%04X", point);
        if (good && utf8_character(text, len) != point)
            fail_msg("U+%04X, back", point);
        if (utf8_valid(text, len) != (good && point != 0))
            fail_msg("U+%04X", point);
        if (len > 1 && utf8_sequence(text, len - 1) != 0)
            fail_msg("U+%04X, cut", point);
    }
}

static void exactly_the_encodings_are_valid(void **state)
{
    (void)state;
    uint32_t count[5] = {0};
    for (uint32_t n = 0; n < 1u << 24; n++) {
        const char text[3] = {(char)(n >> 16), (char)(n >> 8), (char)n};
        size_t len = utf8_sequence(text, 3);
        assert_true(len <= 3);
        count[len]++;
    }
    assert_int_equal(count[1], 0x80 << 16);
    assert_int_equal(count[2], (0x800 - 0x80) << 8);
    assert_int_equal(count[3], 0x10000 - 0x800 - 0x800);
}

static void texts(void **state)
{
    (void)state;
    assert_true(utf8_valid("", 0));
    assert_true(utf8_valid("a\xc3\xbcz", 4));
    assert_false(utf8_valid("a\xc3z", 3));
    assert_false(utf8_valid("a\0z", 3));
    assert_false(utf8_valid("\x80", 1));
    assert_false(utf8_valid("\xf0\x80\x80\x80", 4));
    assert_false(utf8_valid("\xf4\x90\x80\x80", 4));
    assert_false(utf8_valid("\xf8\x88\x80\x80\x80", 5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point_is_valid_but_the_surrogates),
        cmocka_unit_test(exactly_the_encodings_are_valid),
        cmocka_unit_test(texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
