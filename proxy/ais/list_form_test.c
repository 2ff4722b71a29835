/* A native page becomes the SDK's. */
#include "proxy/ais/list_form.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"

static const char page[] = "{\"entries\":[{\"name\":\"a\",\"size\":200,\"version\":\"1.2.3\","
                           "\"checksum\":{\"type\":\"xxh3\",\"value\":\"ff\"}},"
                           "{\"name\":\"c\",\"size\":1,\"version\":\"0.0.0\",\"cached\":false}],"
                           "\"prefixes\":[\"b/\"],\"next\":\"t\",\"incomplete\":false}";

static void put(const struct list_flags *flags, struct buf *out)
{
    struct error err = ERROR_INIT;
    const struct buf text = {.data = (char *)page, .len = sizeof page - 1};
    assert_int_equal(list_form_put(&text, flags, "u", out, &err), 0);
}

#define HEAD                     \
    "\x84\xa4UUID\xa1u\xb1"      \
    "ContinuationToken\xa1t\xa5" \
    "Flags\x00\xa7"              \
    "Entries"
#define EXPECT(out, bytes)                                 \
    do {                                                   \
        assert_int_equal((out).len, sizeof(bytes) - 1);    \
        assert_memory_equal((out).data, bytes, (out).len); \
    } while (0)

static void test_a_whole_page(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf out = BUF_INIT;
    put(&(struct list_flags){0}, &out);
    EXPECT(out, HEAD "\x93"
                     "\x85\xa1n\xa1"
                     "a\xa1"
                     "f\x40\xa1s\xcc\xc8\xa2"
                     "cs\xa2"
                     "ff\xa1v\xa5"
                     "1.2.3"
                     "\x82\xa1n\xa2"
                     "b/\xa1"
                     "f\xcd\x01\x00"
                     "\x85\xa1n\xa1"
                     "c\xa1"
                     "f\x00\xa1s\x01\xa2"
                     "cs\xa0\xa1v\xa5"
                     "0.0.0");
}

static void test_names_without_prefixes(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf out = BUF_INIT;
    put(&(struct list_flags){.names_only = true, .no_dirs = true}, &out);
    EXPECT(out, HEAD "\x92\x82\xa1n\xa1"
                     "a\xa1"
                     "f\x40\x82\xa1n\xa1"
                     "c\xa1"
                     "f\x00");
}

static void test_a_member_of_an_archive(void **state)
{
    (void)state;
    static const char members[] = "{\"entries\":[{\"name\":\"a/b\",\"size\":3,\"version\":\"1\","
                                  "\"member\":true}],\"prefixes\":[],\"next\":\"t\"}";
    struct error err = ERROR_INIT;
    _cleanup_buf_ struct buf out = BUF_INIT;
    const struct buf text = {.data = (char *)members, .len = sizeof members - 1};
    const struct list_flags flags = {.sizes_only = true};
    assert_int_equal(list_form_put(&text, &flags, "u", &out, &err), 0);
    EXPECT(out, HEAD "\x91\x83\xa1n\xa3"
                     "a/b\xa1"
                     "f\xcc\xc0\xa1s\x03");
}

static void test_what_is_no_page(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"entries\":[],\"prefixes\":[]}",
        "{\"entries\":[{}],\"prefixes\":[],\"next\":\"\"}",
        "{\"entries\":[],\"prefixes\":[1],\"next\":\"\"}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        _cleanup_buf_ struct buf out = BUF_INIT;
        struct error err = ERROR_INIT;
        const struct buf text = {.data = (char *)bad[i], .len = strlen(bad[i])};
        assert_int_not_equal(list_form_put(&text, &(struct list_flags){0}, "u", &out, &err), 0);
    }
}

static void test_flags(void **state)
{
    (void)state;
    struct list_flags f;
    struct error err = ERROR_INIT;
    assert_int_equal(list_flags_parse("", &f, &err), 0);
    assert_false(f.cached || f.members || f.names_only || f.sizes_only || f.no_recursion ||
                 f.no_dirs);
    assert_int_equal(list_flags_parse("10297", &f, &err), 0); /* 0, 3, 4, 5, 11, 13 */
    assert_true(f.cached && f.members && f.names_only && f.sizes_only && f.no_recursion &&
                f.no_dirs);
    assert_int_equal(list_flags_parse("2", &f, &err), E_UNSUPPORTED); /* missing ones */
    assert_int_equal(list_flags_parse("x", &f, &err), E_INVALID);
    assert_int_equal(list_flags_parse("-1", &f, &err), E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_whole_page),
        cmocka_unit_test(test_names_without_prefixes),
        cmocka_unit_test(test_a_member_of_an_archive),
        cmocka_unit_test(test_what_is_no_page),
        cmocka_unit_test(test_flags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
