#include "s3/uploads/part_sizes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "s3/uploads/complete_body.h"

enum { MIB = 1 << 20 };

static void check_text(const uint64_t *sizes, size_t count, const char *want)
{
    char text[PART_SIZES_MAX];
    struct part_sizes parsed;
    struct part_span span;
    uint64_t offset = 0;
    assert_true(part_sizes_print(sizes, count, text));
    assert_string_equal(text, want);
    assert_true(part_sizes_parse(text, &parsed));
    assert_int_equal(parsed.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_true(part_sizes_find(text, (unsigned)i + 1, &span));
        assert_int_equal(span.offset, offset);
        assert_int_equal(span.size, sizes[i]);
        offset += sizes[i];
    }
    assert_int_equal(parsed.total, offset);
    assert_false(part_sizes_find(text, 0, &span));
    assert_false(part_sizes_find(text, (unsigned)count + 1, &span));
}

static void test_runs(void **state)
{
    (void)state;
    check_text((const uint64_t[]){0}, 1, "1x0");
    check_text((const uint64_t[]){7}, 1, "1x7");
    check_text((const uint64_t[]){5, 5, 5}, 3, "3x5");
    check_text((const uint64_t[]){5, 5, 7, 5, 0}, 5, "2x5,1x7,1x5,1x0");
    check_text((const uint64_t[]){5ULL << 30, 1}, 2, "1x5368709120,1x1");
}

static void test_many_parts(void **state)
{
    (void)state;
    static uint64_t sizes[S3_PARTS_MAX + 1];
    char text[PART_SIZES_MAX];
    for (size_t i = 0; i <= S3_PARTS_MAX; i++)
        sizes[i] = 8 * MIB;
    sizes[S3_PARTS_MAX - 1] = 123;
    check_text(sizes, S3_PARTS_MAX, "9999x8388608,1x123");
    assert_false(part_sizes_print(sizes, S3_PARTS_MAX + 1, text));
    assert_false(part_sizes_print(sizes, 0, text));
    for (size_t i = 0; i < S3_PARTS_MAX; i++)
        sizes[i] = 8 * MIB + i;
    assert_false(part_sizes_print(sizes, S3_PARTS_MAX, text));
    assert_true(part_sizes_print(sizes, 40, text));
}

static void test_texts_that_are_none(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "x",
        "1",
        "1x",
        "x1",
        "0x5",
        "01x5",
        "1x05",
        "1x5,",
        ",1x5",
        "1x5,,1x6",
        "1x5,1x5",
        " 1x5",
        "1x5 ",
        "-1x5",
        "1X5",
        "10001x5",
        "1x5,1x6x",
        "9999x1,2x2",
        "1x5368709121",
        "1x99999999999999999999999999",
        "99999999999999999999999999x1",
    };
    struct part_sizes parsed;
    char longest[PART_SIZES_MAX + 1];
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_false(part_sizes_parse(texts[i], &parsed));
    for (size_t i = 0; i < PART_SIZES_MAX; i += 4)
        memcpy(longest + i, i % 8 == 0 ? "1x1," : "1x2,", 4);
    longest[PART_SIZES_MAX - 1] = '\0';
    assert_true(part_sizes_parse(longest, &parsed));
    longest[PART_SIZES_MAX - 1] = '2';
    longest[PART_SIZES_MAX] = '\0';
    assert_false(part_sizes_parse(longest, &parsed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_many_parts),
        cmocka_unit_test(test_texts_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
