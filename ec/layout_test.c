/* Every byte has one place, and pieces cover a range once. */
#include "ec/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_bounds(void **state)
{
    (void)state;
    static const struct ec_layout good[] = {
        {1, 1, 64, 0}, {32, 8, 4 << 20, EC_LENGTH_MAX}, {6, 3, 64 << 10, 1}};
    static const struct ec_layout bad[] = {{0, 1, 64, 0},
                                           {33, 1, 64, 0},
                                           {1, 0, 64, 0},
                                           {1, 9, 64, 0},
                                           {1, 1, 0, 0},
                                           {1, 1, 65, 0},
                                           {1, 1, 32, 0},
                                           {1, 1, (4 << 20) + 64, 0},
                                           {1, 1, 64, EC_LENGTH_MAX + 1}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(ec_layout_check(&good[i], NULL), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(ec_layout_check(&bad[i], NULL), E_INVALID);
}

static void test_lengths(void **state)
{
    (void)state;
    const struct {
        uint64_t length, stripes, slice_bytes;
    } rows[] = {{0, 0, 0},
                {1, 1, 64 + 8},
                {128, 1, 64 + 8},
                {129, 1, 128 + 8},
                {512, 1, 256 + 8},
                {513, 2, 256 + 8 + 64 + 8},
                {1024, 2, 2 * (256 + 8)}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct ec_layout l = {.k = 2, .m = 1, .unit = 256, .length = rows[i].length};
        assert_int_equal(ec_layout_stripes(&l), rows[i].stripes);
        assert_int_equal(ec_layout_slice_bytes(&l), rows[i].slice_bytes);
    }
}

static void test_each_byte_has_one_place(void **state)
{
    (void)state;
    for (uint64_t length = 1; length < 2000; length += 37) {
        const struct ec_layout l = {.k = 3, .m = 2, .unit = 128, .length = length};
        unsigned char seen[3][4096] = {{0}};
        for (uint64_t at = 0; at < length;) {
            const struct ec_piece p = ec_layout_piece(&l, at, length);
            assert_true(p.len > 0 && p.slice < 3 && p.stripe < ec_layout_stripes(&l));
            assert_true(p.at + p.len <= ec_layout_block(&l, p.stripe));
            for (uint32_t i = 0; i < p.len; i++)
                assert_int_equal(seen[p.slice][p.stripe * 128 + p.at + i]++, 0);
            at += p.len;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_each_byte_has_one_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
