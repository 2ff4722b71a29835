#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "common/cleanup.h"
#include "gateway/etag.h"

static const struct {
    const char *native, *s3;
} pairs[] = {
    {"\"1.2.3\"", "\"00000000000100000000020000000003-1\""},
    {"\"1795701805374.3.17\"", "\"01a2182b113e00000000030000000011-1\""},
    {"\"281474976710655.1099511627775.1099511627775\"", "\"ffffffffffffffffffffffffffffffff-1\""},
    {"\"d41d8cd98f00b204e9800998ecf8427e\"", "\"d41d8cd98f00b204e9800998ecf8427e\""},
    {"\"d41d8cd98f00b204e9800998ecf8427e-2\"", "\"d41d8cd98f00b204e9800998ecf8427e-2\""},
};

static void test_tags_become_the_other_form_and_come_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        _cleanup_buf_ struct buf s3 = BUF_INIT;
        _cleanup_buf_ struct buf native = BUF_INIT;
        etag_put_s3(pairs[i].native, &s3);
        assert_string_equal(buf_str(&s3), pairs[i].s3);
        etag_put_native_one(pairs[i].s3, &native);
        assert_string_equal(buf_str(&native), pairs[i].native);
    }
}

static void test_texts_that_are_no_version_stay(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "\"281474976710656.1.1\"", /* too large for its digits */
        "\"1.2\"",
        "\"1.2.3.4\"",
        "1.2.3",
        "\"1.2.3",
        "\"\"",
        "",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        _cleanup_buf_ struct buf out = BUF_INIT;
        etag_put_s3(texts[i], &out);
        assert_string_equal(buf_str(&out), texts[i]);
    }
}

#define TAG "00000000000100000000020000000003-1"

static void test_lists(void **state)
{
    (void)state;
    static const struct {
        const char *list, *native;
    } rows[] = {
        {"*", "*"},
        {TAG, "\"1.2.3\", \"" TAG "\""},
        {"\"a\",  \"" TAG "\" , b", "\"a\", \"1.2.3\", \"" TAG "\", b"},
        {"W/\"" TAG "\"", "W/\"" TAG "\""},
        {"\"d41d8cd98f00b204e9800998ecf8427e-3\"", "\"d41d8cd98f00b204e9800998ecf8427e-3\""},
        {",", ", "},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_buf_ struct buf out = BUF_INIT;
        etag_put_native(rows[i].list, &out);
        assert_string_equal(buf_str(&out), rows[i].native);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tags_become_the_other_form_and_come_back),
        cmocka_unit_test(test_texts_that_are_no_version_stay),
        cmocka_unit_test(test_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
