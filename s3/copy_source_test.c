#include "s3/copy_source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "s3/op.h"

static enum s3_error read_source(struct arena *a, const char *source, const char *range,
                                 struct s3_copy_source *out)
{
    const struct s3_field headers[] = {{"X-Amz-Copy-Source", source},
                                       {"x-amz-copy-source-range", range}};
    const struct s3_request r = {.headers = headers, .header_count = range != NULL ? 2 : 1};
    return s3_copy_source_read(&r, a, out, NULL);
}

static void sources(void **unused)
{
    (void)unused;
    static const struct {
        const char *text, *bucket, *key;
    } rows[] = {
        {"b/k", "b", "k"},
        {"/b/k", "b", "k"},
        {"b/a%20b+c/%E2%98%83", "b", "a b+c/\xe2\x98\x83"},
        {"/b//k/", "b", "/k/"},
        {"b/what?", "b", "what?"},
        {"b/k?versionId=null", "b", "k"},
        {"b%2Fk", "b", "k"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_arena_ struct arena *a = arena_new(1024);
        struct s3_copy_source s;
        assert_int_equal(read_source(a, rows[i].text, NULL, &s), S3_OK);
        assert_string_equal(s.bucket, rows[i].bucket);
        assert_string_equal(s.key, rows[i].key);
        assert_false(s.has_range);
    }
}

static void ranges(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    struct s3_copy_source s;
    assert_int_equal(read_source(a, "b/k", "bytes=5-9", &s), S3_OK);
    assert_true(s.has_range && s.first == 5 && s.last == 9);
    static const char *const bad[] = {"",          "5-9",       "bytes=5-",     "bytes=-9",
                                      "bytes=9-5", "bytes=a-b", "bytes=1-2,4-5"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(read_source(a, "b/k", bad[i], &s), S3_INVALID_ARGUMENT);
}

static void sources_that_are_refused(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    struct s3_copy_source s;
    static const char *const bad[] = {"",    "/",   "b",     "b/",    "/b/",
                                      "//k", "b/%", "b/%00", "b/%ff", "b/k?versionId=1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(read_source(a, bad[i], NULL, &s), S3_INVALID_ARGUMENT);
    char text[S3_KEY_MAX + 4] = "b/";
    memset(text + 2, 'k', S3_KEY_MAX);
    assert_int_equal(read_source(a, text, NULL, &s), S3_OK);
    text[S3_KEY_MAX + 2] = 'k';
    assert_int_equal(read_source(a, text, NULL, &s), S3_KEY_TOO_LONG);
    const struct s3_request none = {.header_count = 0};
    assert_int_equal(s3_copy_source_read(&none, a, &s, NULL), S3_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sources),
        cmocka_unit_test(ranges),
        cmocka_unit_test(sources_that_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
