#include "s3/sum.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "s3/testing/request_text.h"
#include "s3/testing/vectors.h"

static enum s3_sum_type type_named(const char *header)
{
    enum s3_sum_type type = 0;
    while (type < S3_SUM_TYPES &&
           strcmp(s3_sum_header(type) + strlen("x-amz-checksum-"), header) != 0)
        type++;
    assert_true(type < S3_SUM_TYPES);
    return type;
}

/* In two pieces, cut at `cut`. */
static void sum_of(enum s3_sum_type type, const char *data, size_t len, size_t cut,
                   struct s3_sum_value *out)
{
    _cleanup_(s3_sum_freep)
    struct s3_sum *s = s3_sum_new(type);
    s3_sum_update(s, data, cut);
    s3_sum_update(s, data + cut, len - cut);
    s3_sum_final(s, out);
}

static void vectors_of_the_reference(void **state)
{
    size_t i;
    json_t *row;
    json_array_foreach(vectors_section(state, "sums"), i, row)
    {
        _cleanup_arena_ struct arena *a = arena_new(1024);
        size_t len;
        const char *data = vectors_bytes(row, "data", a, &len);
        enum s3_sum_type type = type_named(vectors_text(row, "type"));
        for (size_t cut = 0; cut <= len; cut += 1 + len / 3) {
            struct s3_sum_value got, read;
            char text[S3_SUM_BASE64_MAX];
            sum_of(type, data, len, cut, &got);
            assert_string_equal(s3_sum_print(&got, text), vectors_text(row, "value"));
            assert_true(s3_sum_parse(type, text, &read));
            assert_true(s3_sum_equal(&got, &read));
        }
    }
}

static void texts_that_are_no_values(void **unused)
{
    (void)unused;
    static const char *const bad[] = {
        "",         "AAAA",       "AAAAAA",   "AAAAAA=",  "AAAAAA===", "AAAAAAA=",
        "AAAAAB==", "AAAA\nAA==", "AA*AAA==", "=AAAAA==", "AAAAAA== "};
    struct s3_sum_value v, other;
    assert_true(s3_sum_parse(S3_SUM_CRC32, "AAAAAA==", &v));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(s3_sum_parse(S3_SUM_CRC32, bad[i], &other));
    assert_true(s3_sum_parse(S3_SUM_CRC32C, "AAAAAA==", &other));
    assert_false(s3_sum_equal(&v, &other));
    assert_true(s3_sum_parse(S3_SUM_CRC32, "AAAAAQ==", &other));
    assert_false(s3_sum_equal(&v, &other));
}

static const struct row {
    const char *headers;
    enum s3_error error;
    bool is_asked, is_in_trailer;
    enum s3_sum_type type;
} rows[] = {
    {"host:h", S3_OK, false, false, S3_SUM_CRC32},
    {"X-Amz-Checksum-CRC32:AAAAAA==", S3_OK, true, false, S3_SUM_CRC32},
    {"x-amz-checksum-crc32:AAAAAA==\nx-amz-sdk-checksum-algorithm:crc32", S3_OK, true, false,
     S3_SUM_CRC32},
    {"x-amz-trailer:x-amz-checksum-crc64nvme\nx-amz-sdk-checksum-algorithm:CRC64NVME", S3_OK, true,
     true, S3_SUM_CRC64NVME},
    {"x-amz-trailer:x-other, x-amz-checksum-sha1", S3_OK, true, true, S3_SUM_SHA1},
    {"x-amz-checksum-mode:ENABLED\nx-amz-checksum-type:COMPOSITE\nx-amz-checksum-algorithm:SHA1",
     S3_OK, false, false, S3_SUM_CRC32},
    {"x-amz-checksum-crc32:AAAAAA==\nx-amz-checksum-crc32c:AAAAAA==", S3_INVALID_REQUEST, false,
     false, S3_SUM_CRC32},
    {"x-amz-checksum-crc32:AAAAAA==\nx-amz-trailer:x-amz-checksum-crc32", S3_INVALID_REQUEST, false,
     false, S3_SUM_CRC32},
    {"x-amz-checksum-crc32:AAAA", S3_INVALID_REQUEST, false, false, S3_SUM_CRC32},
    {"x-amz-checksum-md6:AAAA", S3_INVALID_REQUEST, false, false, S3_SUM_CRC32},
    {"x-amz-trailer:x-amz-checksum-md6", S3_INVALID_REQUEST, false, false, S3_SUM_CRC32},
    {"x-amz-sdk-checksum-algorithm:CRC32", S3_INVALID_REQUEST, false, false, S3_SUM_CRC32},
    {"x-amz-checksum-crc32:AAAAAA==\nx-amz-sdk-checksum-algorithm:SHA1", S3_INVALID_REQUEST, false,
     false, S3_SUM_CRC32},
};

static void what_requests_ask(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_arena_ struct arena *a = arena_new(1024);
        const char *text = arena_printf(a, "PUT\n/b/k\n\n%s", rows[i].headers);
        const struct s3_request r = request_text(a, text, strlen(text));
        struct s3_sum_asked asked;
        assert_int_equal(s3_sum_asked(&r, &asked, NULL), rows[i].error);
        if (rows[i].error != S3_OK)
            continue;
        assert_int_equal(asked.is_asked, rows[i].is_asked);
        assert_int_equal(asked.is_in_trailer, rows[i].is_in_trailer);
        assert_int_equal(asked.value.type, rows[i].type);
    }
}

static void content_md5(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    struct checksum_value v;
    struct s3_request r = request_text(a, "PUT\n/\n", 6);
    assert_int_equal(s3_sum_content_md5(&r, &v, NULL), S3_OK);
    assert_int_equal(v.type, CHECKSUM_NONE);
    const struct s3_field md5 = {"Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg=="};
    r.headers = &md5;
    r.header_count = 1;
    assert_int_equal(s3_sum_content_md5(&r, &v, NULL), S3_OK);
    assert_int_equal(v.type, CHECKSUM_MD5);
    const struct s3_field bad = {"Content-MD5", "d41d8cd98f00b204e9800998ecf8427e"};
    r.headers = &bad;
    assert_int_equal(s3_sum_content_md5(&r, &v, NULL), S3_INVALID_DIGEST);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_of_the_reference),
        cmocka_unit_test(texts_that_are_no_values),
        cmocka_unit_test(what_requests_ask),
        cmocka_unit_test(content_md5),
    };
    if (argc != 2)
        return 2;
    vectors_path = argv[1];
    return cmocka_run_group_tests(tests, vectors_load, vectors_drop);
}
