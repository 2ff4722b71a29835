#include "s3/tags.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define TAG(key, value) "<Tag><Key>" key "</Key><Value>" value "</Value></Tag>"
#define TAGGING(tags) "<Tagging><TagSet>" tags "</TagSet></Tagging>"

static enum s3_error parse(struct arena *a, const char *body, struct s3_tags *t)
{
    return s3_tags_parse(body, strlen(body), S3_OBJECT_TAGS_MAX, a, t, NULL);
}

static void documents(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    _cleanup_buf_ struct buf out = BUF_INIT;
    struct s3_tags t;
    assert_int_equal(parse(a, TAGGING(TAG("a", "1") TAG("b&lt;", "")), &t), S3_OK);
    assert_int_equal(t.count, 2);
    assert_string_equal(s3_tags_get(&t, "a"), "1");
    assert_string_equal(s3_tags_get(&t, "b<"), "");
    assert_null(s3_tags_get(&t, "c"));
    s3_tags_document(&t, &out);
    assert_string_equal(buf_str(&out),
                        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                        "<Tagging xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><TagSet>" TAG(
                            "a", "1") TAG("b&lt;", "") "</TagSet></Tagging>");
    assert_int_equal(parse(a, TAGGING(""), &t), S3_OK);
    assert_int_equal(t.count, 0);
}

static void documents_that_are_refused(void **unused)
{
    (void)unused;
    static const struct {
        const char *body;
        enum s3_error error;
    } rows[] = {
        {"", S3_MALFORMED_XML},
        {TAGGING("<Tag><Key>a</Key></Tag>"), S3_MALFORMED_XML},
        {TAGGING("<Tag><Value>a</Value></Tag>"), S3_MALFORMED_XML},
        {TAGGING("<Tag><Key>a</Key></Tag>" TAG("b", "1")), S3_MALFORMED_XML},
        {TAGGING("text"), S3_MALFORMED_XML},
        {TAGGING(TAG("", "1")), S3_INVALID_TAG},
        {TAGGING(TAG("a", "1") TAG("a", "2")), S3_INVALID_TAG},
        {TAGGING(TAG("aws:a", "1")), S3_INVALID_TAG},
        {TAGGING(TAG("1", "") TAG("2", "") TAG("3", "") TAG("4", "") TAG("5", "") TAG("6", "")
                     TAG("7", "") TAG("8", "") TAG("9", "") TAG("10", "") TAG("11", "")),
         S3_INVALID_TAG},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_arena_ struct arena *a = arena_new(1024);
        struct s3_tags t;
        assert_int_equal(parse(a, rows[i].body, &t), rows[i].error);
    }
}

/* Limits are of characters, and the header has the same as the document. */
static void headers(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    _cleanup_buf_ struct buf text = BUF_INIT;
    struct s3_tags t;
    assert_int_equal(s3_tags_parse_header("a=1&b=x+y%26", S3_OBJECT_TAGS_MAX, a, &t, NULL), S3_OK);
    assert_string_equal(s3_tags_get(&t, "b"), "x y&");
    assert_int_equal(s3_tags_parse_header("a=%", S3_OBJECT_TAGS_MAX, a, &t, NULL),
                     S3_INVALID_ARGUMENT);
    assert_int_equal(s3_tags_parse_header("a=%ff", S3_OBJECT_TAGS_MAX, a, &t, NULL),
                     S3_INVALID_TAG);
    for (int i = 0; i < S3_TAG_KEY_MAX; i++)
        buf_puts(&text, "%C3%A9");
    assert_int_equal(s3_tags_parse_header(buf_str(&text), S3_OBJECT_TAGS_MAX, a, &t, NULL), S3_OK);
    buf_puts(&text, "x");
    assert_int_equal(s3_tags_parse_header(buf_str(&text), S3_OBJECT_TAGS_MAX, a, &t, NULL),
                     S3_INVALID_TAG);
    buf_clear(&text);
    buf_puts(&text, "a=");
    for (int i = 0; i < S3_TAG_VALUE_MAX; i++)
        buf_puts(&text, "v");
    assert_int_equal(s3_tags_parse_header(buf_str(&text), S3_OBJECT_TAGS_MAX, a, &t, NULL), S3_OK);
    buf_puts(&text, "v");
    assert_int_equal(s3_tags_parse_header(buf_str(&text), S3_OBJECT_TAGS_MAX, a, &t, NULL),
                     S3_INVALID_TAG);
}

static void headers_that_are_written(void **unused)
{
    (void)unused;
    static const struct {
        const char *read, *written;
    } rows[] = {
        {"", ""},
        {"a", "a="},
        {"b=2&a=1&B", "B=&a=1&b=2"},
        {"a+b=x%26y%3d", "a%20b=x%26y%3D"},
        {"%c3%a9=-_.~/", "%C3%A9=-_.~%2F"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_arena_ struct arena *a = arena_new(1024);
        _cleanup_buf_ struct buf text = BUF_INIT;
        struct s3_tags t;
        assert_int_equal(s3_tags_parse_header(rows[i].read, S3_OBJECT_TAGS_MAX, a, &t, NULL),
                         S3_OK);
        s3_tags_print(&t, &text);
        assert_string_equal(buf_str(&text), rows[i].written);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents),
        cmocka_unit_test(documents_that_are_refused),
        cmocka_unit_test(headers),
        cmocka_unit_test(headers_that_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
