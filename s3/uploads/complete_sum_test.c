#include "s3/uploads/complete_sum.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "s3/uploads/sum_kind.h"

/* CRC32 of "a" and of "b", and that of both values in a row. */
#define CRC_A "6Le+Qw=="
#define CRC_B "cb7v+Q=="

static void put_crc32(struct s3_sum_value *out, const void *data, size_t len)
{
    struct s3_sum *sum = s3_sum_new(S3_SUM_CRC32);
    s3_sum_update(sum, data, len);
    s3_sum_final(sum, out);
    s3_sum_free(sum);
}

static enum s3_error read_one(const char *header, const char *value, const char *type,
                              const struct s3_complete *list, struct s3_complete_sum *out)
{
    const struct s3_field fields[] = {{header, value}, {"x-amz-checksum-type", type}};
    const struct s3_request r = {.headers = fields, .header_count = type != NULL ? 2 : 1};
    struct s3_failure why;
    return s3_complete_sum_read(&r, list, out, &why);
}

static struct s3_part part(unsigned number, const char *sum)
{
    struct s3_part p = {.number = number, .etag = "x", .has_sum = true};
    assert_true(s3_sum_parse(S3_SUM_CRC32, sum, &p.sum));
    return p;
}

static void test_sums_of_a_completion(void **state)
{
    (void)state;
    const struct s3_part parts[] = {part(1, CRC_A), part(2, CRC_B)};
    const struct s3_complete list = {parts, 2}, one = {parts, 1};
    struct s3_complete_sum out;
    struct s3_sum_value both;
    unsigned char raw[8];
    char text[S3_SUM_BASE64_MAX], composite[S3_SUM_BASE64_MAX + 4];
    memcpy(raw, parts[0].sum.bytes, 4);
    memcpy(raw + 4, parts[1].sum.bytes, 4);
    put_crc32(&both, raw, sizeof raw);
    snprintf(composite, sizeof composite, "%s-2", s3_sum_print(&both, text));
    const char *const name = "x-amz-checksum-crc32";
    assert_int_equal(read_one("x-other", "", NULL, &list, &out), S3_OK);
    assert_false(out.is_given);
    assert_int_equal(read_one(name, CRC_A, NULL, &list, &out), S3_OK);
    assert_true(out.is_given && out.sum.parts == 0);
    assert_int_equal(read_one(name, CRC_A, "FULL_OBJECT", &list, &out), S3_OK);
    assert_int_equal(read_one(name, CRC_A, "COMPOSITE", &list, &out), S3_INVALID_REQUEST);
    assert_int_equal(read_one(name, composite, "COMPOSITE", &list, &out), S3_OK);
    assert_int_equal(out.sum.parts, 2);
    assert_int_equal(read_one(name, composite, "FULL_OBJECT", &list, &out), S3_INVALID_REQUEST);
    assert_int_equal(read_one(name, composite, NULL, &one, &out), S3_BAD_DIGEST);
    assert_int_equal(read_one(name, CRC_A "-2", NULL, &list, &out), S3_BAD_DIGEST);
    assert_int_equal(read_one("x-amz-checksum-crc32c", CRC_A "-2", NULL, &list, &out),
                     S3_INVALID_REQUEST);
    static const char *const wrong[] = {"", "-2", CRC_A "-", CRC_A "-0", CRC_A "-10001", "x"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(read_one(name, wrong[i], NULL, &list, &out), S3_BAD_DIGEST);
}

static void test_kinds_of_sums(void **state)
{
    (void)state;
    static const struct {
        const char *algorithm, *type;
        enum s3_error error;
        bool is_composite;
    } rows[] = {
        {"CRC32", "FULL_OBJECT", S3_OK, false},
        {"crc32c", "composite", S3_OK, true},
        {"SHA256", "COMPOSITE", S3_OK, true},
        {"SHA1", "FULL_OBJECT", S3_INVALID_REQUEST, false},
        {"CRC64NVME", "FULL_OBJECT", S3_OK, false},
        {"CRC64NVME", "COMPOSITE", S3_INVALID_REQUEST, false},
        {"CRC32", "OTHER", S3_INVALID_REQUEST, false},
        {"MD5", "FULL_OBJECT", S3_INVALID_REQUEST, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct s3_field fields[] = {{"x-amz-checksum-algorithm", rows[i].algorithm},
                                          {"x-amz-checksum-type", rows[i].type}};
        const struct s3_request r = {.headers = fields, .header_count = 2};
        struct s3_sum_kind kind;
        assert_int_equal(s3_sum_kind_read(&r, &kind, NULL), rows[i].error);
        if (rows[i].error == S3_OK)
            assert_int_equal(kind.is_composite, rows[i].is_composite);
    }
}

static void test_default_kinds(void **state)
{
    (void)state;
    const struct s3_field crc[] = {{"x-amz-checksum-algorithm", "CRC32"}},
                          crc64[] = {{"x-amz-checksum-algorithm", "CRC64NVME"}},
                          type[] = {{"x-amz-checksum-type", "COMPOSITE"}};
    const struct s3_request requests[] = {{.headers = crc, .header_count = 1},
                                          {.headers = crc64, .header_count = 1},
                                          {.headers = type, .header_count = 1},
                                          {.headers = NULL, .header_count = 0}};
    struct s3_sum_kind kind;
    assert_int_equal(s3_sum_kind_read(&requests[0], &kind, NULL), S3_OK);
    assert_string_equal(s3_sum_kind_text(&kind), "COMPOSITE");
    assert_int_equal(s3_sum_kind_read(&requests[1], &kind, NULL), S3_OK);
    assert_string_equal(s3_sum_kind_text(&kind), "FULL_OBJECT");
    assert_int_equal(s3_sum_kind_read(&requests[2], &kind, NULL), S3_INVALID_REQUEST);
    assert_int_equal(s3_sum_kind_read(&requests[3], &kind, NULL), S3_OK);
    assert_false(kind.is_asked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_of_a_completion),
        cmocka_unit_test(test_kinds_of_sums),
        cmocka_unit_test(test_default_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
