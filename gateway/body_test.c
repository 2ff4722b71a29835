#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "common/buf.h"
#include "gateway/body.h"

#define HELLO_CRC32 "DUoRhQ==" /* of "hello world" */
#define HELLO_SHA256 "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9"
#define CHUNKED(trailers) "6\r\nhello \r\n5\r\nworld\r\n0\r\n" trailers "\r\n"

struct row {
    const char *name;
    enum s3_payload payload;
    const char *payload_text;
    struct s3_field headers[3];
    const char *body;
    enum s3_error begins, ends;
};

static const struct row rows[] = {
    {"plain", S3_PAYLOAD_UNSIGNED, NULL, {{NULL}}, "hello world", S3_OK, S3_OK},
    {"digest", S3_PAYLOAD_DIGEST, HELLO_SHA256, {{NULL}}, "hello world", S3_OK, S3_OK},
    {"another digest",
     S3_PAYLOAD_DIGEST,
     HELLO_SHA256,
     {{NULL}},
     "hello_world",
     S3_OK,
     S3_CONTENT_SHA256},
    {"sum",
     S3_PAYLOAD_UNSIGNED,
     NULL,
     {{"x-amz-checksum-crc32", HELLO_CRC32}},
     "hello world",
     S3_OK,
     S3_OK},
    {"another sum",
     S3_PAYLOAD_UNSIGNED,
     NULL,
     {{"x-amz-checksum-crc32", HELLO_CRC32}},
     "hello_world",
     S3_OK,
     S3_BAD_DIGEST},
    {"trailer",
     S3_PAYLOAD_CHUNKS_TRAILER,
     NULL,
     {{"x-amz-decoded-content-length", "11"}, {"x-amz-trailer", "x-amz-checksum-crc32"}},
     CHUNKED("x-amz-checksum-crc32:" HELLO_CRC32 "\r\n"),
     S3_OK,
     S3_OK},
    {"another trailer",
     S3_PAYLOAD_CHUNKS_TRAILER,
     NULL,
     {{"x-amz-decoded-content-length", "11"}, {"x-amz-trailer", "x-amz-checksum-crc32"}},
     CHUNKED("x-amz-checksum-crc32:AAAAAA==\r\n"),
     S3_OK,
     S3_BAD_DIGEST},
    {"trailer of a body without chunks",
     S3_PAYLOAD_UNSIGNED,
     NULL,
     {{"x-amz-trailer", "x-amz-checksum-crc32"}},
     "hello world",
     S3_MALFORMED_TRAILER,
     S3_OK},
    {"no length of the object",
     S3_PAYLOAD_CHUNKS_TRAILER,
     NULL,
     {{NULL}},
     CHUNKED(""),
     S3_MISSING_LENGTH,
     S3_OK},
    {"no digest",
     S3_PAYLOAD_UNSIGNED,
     NULL,
     {{"Content-MD5", "x"}},
     "hello world",
     S3_INVALID_DIGEST,
     S3_OK},
};

/* What the body gives when it comes in pieces of this size. */
static enum s3_error read_in_pieces(struct body *b, const char *text, size_t piece, struct buf *out)
{
    struct s3_failure why;
    for (size_t at = 0, all = strlen(text); at < all; at += piece) {
        const char *data = text + at, *given;
        size_t len = all - at < piece ? all - at : piece, count;
        do {
            enum s3_error e = body_next(b, &data, &len, &given, &count, &why);
            if (e != S3_OK)
                return e;
            buf_append(out, given, count);
        } while (count > 0);
    }
    return body_end(b, &why);
}

static void check(const struct row *row, size_t piece)
{
    struct gateway_call call = {
        .credential = {.payload = row->payload, .payload_text = row->payload_text}};
    call.head.headers = row->headers;
    while (row->headers[call.head.header_count].name != NULL)
        call.head.header_count++;
    _cleanup_(body_freep)
    struct body *b = NULL;
    _cleanup_buf_ struct buf out = BUF_INIT;
    struct s3_failure why;
    enum s3_error e = body_new(&call, (int64_t)strlen(row->body), &b, &why);
    if (e != row->begins)
        fail_msg("%s: begins with %s", row->name, s3_error_code(e));
    if (e != S3_OK)
        return;
    e = read_in_pieces(b, row->body, piece, &out);
    if (e != row->ends)
        fail_msg("%s in pieces of %zu: ends with %s", row->name, piece, s3_error_code(e));
    assert_int_equal(body_length(b), 11);
    if (e == S3_OK)
        assert_string_equal(buf_str(&out), "hello world");
}

static void test_bodies_in_pieces_of_all_sizes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (size_t piece = 1; piece <= 80; piece++)
            check(&rows[i], piece);
    }
}

static void test_lengths(void **state)
{
    (void)state;
    struct gateway_call call = {.credential = {.payload = S3_PAYLOAD_UNSIGNED}};
    struct s3_failure why;
    struct body *b;
    assert_int_equal(body_new(&call, -1, &b, &why), S3_MISSING_LENGTH);
    assert_int_equal(body_new(&call, ((int64_t)5 << 30) + 1, &b, &why), S3_ENTITY_TOO_LARGE);
    assert_int_equal(body_new(&call, 5, &b, &why), S3_OK);
    const char *data = "1234", *given;
    size_t len = 4, count;
    assert_int_equal(body_next(b, &data, &len, &given, &count, &why), S3_OK);
    assert_int_equal(body_end(b, &why), S3_INCOMPLETE_BODY);
    body_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bodies_in_pieces_of_all_sizes),
        cmocka_unit_test(test_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
