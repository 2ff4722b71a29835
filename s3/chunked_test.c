#include "s3/chunked.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "s3/testing/vectors.h"

#define SECRET "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
#define TIME "20130524T000000Z"

static struct s3_credential credential_of(enum s3_payload payload, const char *seed)
{
    return (struct s3_credential){.signing = S3_SIGNED_IN_HEADER,
                                  .region = "us-east-1",
                                  .service = "s3",
                                  .time = TIME,
                                  .signature = seed,
                                  .payload = payload};
}

struct body {
    enum s3_payload payload;
    const char *seed, *trailers;
    uint64_t length;
    const char *bytes;
    size_t len;
};

/* Decodes in pieces of `step` bytes; the first trailer's value, if any, becomes *value. */
static enum s3_error decode(const struct body *b, size_t step, struct buf *out, const char *name,
                            struct buf *value)
{
    const struct s3_credential credential = credential_of(b->payload, b->seed);
    struct s3_chunked_spec spec = {
        .credential = &credential, .decoded_length = b->length, .trailers = b->trailers};
    _cleanup_(s3_chunked_freep)
    struct s3_chunked *c = NULL;
    sigv4_signing_key(SECRET, TIME, "us-east-1", "s3", spec.key);
    enum s3_error e = s3_chunked_new(&spec, &c, NULL);
    for (size_t at = 0; at < b->len && e == S3_OK;) {
        const char *data = b->bytes + at, *piece;
        size_t left = b->len - at < step ? b->len - at : step, piece_len;
        at += left;
        while (left > 0 && e == S3_OK) {
            e = s3_chunked_decode(c, &data, &left, &piece, &piece_len, NULL);
            if (e == S3_OK && piece_len > 0)
                buf_append(out, piece, piece_len);
        }
    }
    assert_true(out->len <= b->length);
    if (e == S3_OK)
        e = s3_chunked_end(c, NULL);
    if (e == S3_OK && name != NULL)
        buf_puts(value, s3_chunked_trailer(c, name));
    return e;
}

static enum s3_error decode_text(enum s3_payload payload, const char *trailers, uint64_t length,
                                 const char *text)
{
    _cleanup_buf_ struct buf out = BUF_INIT;
    const struct body b = {payload, "00", trailers, length, text, strlen(text)};
    enum s3_error whole = decode(&b, b.len, &out, NULL, NULL);
    buf_clear(&out);
    assert_int_equal(decode(&b, 1, &out, NULL, NULL), whole);
    return whole;
}

/* --- published -------------------------------------------------------------------------------- */

struct example {
    enum s3_payload payload;
    const char *seed, *signatures[3], *end;
};

static const struct example examples[] = {
    {S3_PAYLOAD_CHUNKS_SIGNED,
     "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
     {"ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
      "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
      "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"},
     "\r\n"},
    {S3_PAYLOAD_CHUNKS_SIGNED_TRAILER,
     "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e",
     {"b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
      "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
      "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992"},
     "x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:"
     "d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n\r\n"},
};

/* 65 KiB of 'a', in chunks of 64 KiB. */
static void put_example(const struct example *x, struct buf *out)
{
    static const size_t sizes[] = {65536, 1024, 0};
    for (size_t i = 0; i < 3; i++) {
        buf_printf(out, "%zx;chunk-signature=%s\r\n", sizes[i], x->signatures[i]);
        for (size_t n = 0; n < sizes[i]; n++)
            buf_putc(out, 'a');
        if (sizes[i] > 0)
            buf_puts(out, "\r\n");
    }
    buf_puts(out, x->end);
}

static void published_examples(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        _cleanup_buf_ struct buf body = BUF_INIT, out = BUF_INIT, value = BUF_INIT;
        const struct example *x = &examples[i];
        bool trails = x->payload == S3_PAYLOAD_CHUNKS_SIGNED_TRAILER;
        const char *trailer = trails ? "x-amz-checksum-crc32c" : NULL;
        put_example(x, &body);
        const struct body b = {x->payload, x->seed, trailer, 66560, body.data, body.len};
        assert_int_equal(decode(&b, 4096, &out, trailer, &value), S3_OK);
        assert_int_equal(out.len, 66560);
        assert_string_equal(buf_str(&value), trails ? "sOO8/Q==" : "");
    }
}

/* --- the reference ---------------------------------------------------------------------------- */

static enum s3_payload payload_named(const char *name)
{
    if (strcmp(name, "STREAMING-UNSIGNED-PAYLOAD-TRAILER") == 0)
        return S3_PAYLOAD_CHUNKS_TRAILER;
    return strcmp(name, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD") == 0
               ? S3_PAYLOAD_CHUNKS_SIGNED
               : S3_PAYLOAD_CHUNKS_SIGNED_TRAILER;
}

static struct body body_of(json_t *row, struct arena *a)
{
    json_t *trailer = json_array_get(json_object_get(row, "trailers"), 0);
    struct body b = {.payload = payload_named(vectors_text(row, "payload")),
                     .seed = vectors_text(row, "seed"),
                     .trailers = json_string_value(json_array_get(trailer, 0)),
                     .length = (uint64_t)json_integer_value(json_object_get(row, "length"))};
    b.bytes = vectors_bytes(row, "body", a, &b.len);
    return b;
}

static void vectors_of_the_reference(void **state)
{
    size_t i;
    json_t *row;
    json_array_foreach(vectors_section(state, "bodies"), i, row)
    {
        _cleanup_arena_ struct arena *a = arena_new(4096);
        const struct body b = body_of(row, a);
        size_t len;
        const char *decoded = vectors_bytes(row, "decoded", a, &len);
        json_t *trailer = json_array_get(json_object_get(row, "trailers"), 0);
        for (size_t step = 1; step < b.len + 7; step += 7) {
            _cleanup_buf_ struct buf out = BUF_INIT, value = BUF_INIT;
            assert_int_equal(decode(&b, step, &out, b.trailers, &value), S3_OK);
            assert_int_equal(out.len, len);
            assert_memory_equal(buf_str(&out), decoded, len);
            if (trailer != NULL)
                assert_string_equal(buf_str(&value), json_string_value(json_array_get(trailer, 1)));
        }
    }
}

/* A body that lacks its end is incomplete, and one whose chunks are signed has no byte that can be
 * another. */
static void cut_and_changed_bodies(void **state)
{
    size_t i;
    json_t *row;
    json_array_foreach(vectors_section(state, "bodies"), i, row)
    {
        _cleanup_arena_ struct arena *a = arena_new(4096);
        struct body b = body_of(row, a);
        char *bytes = (char *)b.bytes;
        size_t len = b.len;
        for (size_t at = 0; at < len; at++) {
            _cleanup_buf_ struct buf out = BUF_INIT;
            b.len = at;
            assert_int_equal(decode(&b, len, &out, NULL, NULL), S3_INCOMPLETE_BODY);
            buf_clear(&out);
            b.len = len;
            bytes[at] ^= 1;
            if (b.payload != S3_PAYLOAD_CHUNKS_TRAILER)
                assert_int_not_equal(decode(&b, len, &out, NULL, NULL), S3_OK);
            bytes[at] ^= 1;
        }
    }
}

/* --- malformed -------------------------------------------------------------------------------- */

static const struct row {
    const char *trailers;
    uint64_t length;
    const char *text;
    enum s3_error error;
} rows[] = {
    {NULL, 0, "0\r\n\r\n", S3_OK},
    {NULL, 3, "3\r\nabc\r\n0\r\n\r\n", S3_OK},
    {NULL, 16, "A\r\n0123456789\r\n6\r\nabcdef\r\n0\r\n\r\n", S3_OK},
    {NULL, 4, "4\r\n\r\n\r\n\r\n0\r\n\r\n", S3_OK},
    {"X-A, x-b", 0, "0\r\nx-b: 1 2\r\nX-a:\r\n\r\n", S3_OK},
    {NULL, 0, "", S3_INCOMPLETE_BODY},
    {NULL, 3, "3\r\nabc\r\n0\r\n", S3_INCOMPLETE_BODY},
    {NULL, 4, "3\r\nabc\r\n0\r\n\r\n", S3_INCOMPLETE_BODY},
    {NULL, 2, "3\r\nabc\r\n0\r\n\r\n", S3_INCOMPLETE_BODY},
    {NULL, 3, "fffffffffffffff\r\n", S3_INCOMPLETE_BODY},
    {NULL, 3, "10000000000000003\r\nabc\r\n0\r\n\r\n", S3_INVALID_REQUEST},
    {NULL, 3, "3\nabc\r\n0\r\n\r\n", S3_INVALID_REQUEST},
    {NULL, 3, "3\r\nabcd\r\n0\r\n\r\n", S3_INVALID_REQUEST},
    {NULL, 3, "-3\r\nabc\r\n0\r\n\r\n", S3_INVALID_REQUEST},
    {NULL, 3, "0x3\r\nabc\r\n0\r\n\r\n", S3_INVALID_REQUEST},
    {NULL, 3, " 3\r\nabc\r\n0\r\n\r\n", S3_INVALID_REQUEST},
    {NULL, 3, "3;a=b\r\nabc\r\n0\r\n\r\n", S3_INVALID_REQUEST},
    {NULL, 3, "\r\nabc\r\n0\r\n\r\n", S3_INVALID_REQUEST},
    {NULL, 0, "0\r\n\r\nx", S3_INVALID_REQUEST},
    {NULL, 0, "0\r\nrubbish\r\n\r\n", S3_INVALID_REQUEST},
    {NULL, 0, "0\r\nx-a:1\r\n\r\n", S3_MALFORMED_TRAILER},
    {"x-a", 0, "0\r\n\r\n", S3_MALFORMED_TRAILER},
    {"x-a", 0, "0\r\nx-a:1\r\nx-a:1\r\n\r\n", S3_MALFORMED_TRAILER},
    {"x-a", 0, "0\r\nx-a:1\r\nx-amz-trailer-signature:00\r\n\r\n", S3_MALFORMED_TRAILER},
    {"1 2 3 4 5 6 7 8 9", 0, "", S3_MALFORMED_TRAILER},
};

static void malformed_bodies(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        enum s3_error e =
            decode_text(S3_PAYLOAD_CHUNKS_TRAILER, rows[i].trailers, rows[i].length, rows[i].text);
        if (e != rows[i].error)
            fail_msg("row %zu: %s", i, s3_error_code(e));
    }
}

static void signed_bodies_need_their_signatures(void **unused)
{
    (void)unused;
    assert_int_equal(decode_text(S3_PAYLOAD_CHUNKS_SIGNED, NULL, 0, "0\r\n\r\n"),
                     S3_INVALID_REQUEST);
    assert_int_equal(decode_text(S3_PAYLOAD_CHUNKS_SIGNED, NULL, 0, "0;chunk-signature=00\r\n\r\n"),
                     S3_SIGNATURE);
    assert_int_equal(decode_text(S3_PAYLOAD_CHUNKS_SIGNED, "x-a", 0, "0\r\n\r\n"),
                     S3_MALFORMED_TRAILER);
    /* A signed body without the signature of its trailers: the published one, cut. */
    _cleanup_buf_ struct buf body = BUF_INIT, out = BUF_INIT;
    put_example(&examples[1], &body);
    char *signature = strstr(body.data, "x-amz-trailer-signature");
    memcpy(signature, "\r\n", 2);
    const struct body b = {examples[1].payload,
                           examples[1].seed,
                           "x-amz-checksum-crc32c",
                           66560,
                           body.data,
                           (size_t)(signature + 2 - body.data)};
    assert_int_equal(decode(&b, b.len, &out, NULL, NULL), S3_MALFORMED_TRAILER);
}

static void a_trailer_behind_the_signature_is_refused(void **unused)
{
    (void)unused;
    _cleanup_buf_ struct buf body = BUF_INIT, out = BUF_INIT;
    put_example(&examples[1], &body);
    body.len -= strlen("\r\n");
    buf_puts(&body, "x-late:1\r\n\r\n");
    const struct body b = {
        examples[1].payload, examples[1].seed, "x-amz-checksum-crc32c, x-late", 66560,
        body.data,           body.len};
    assert_int_equal(decode(&b, b.len, &out, NULL, NULL), S3_INVALID_REQUEST);
}

static void lines_have_a_limit(void **unused)
{
    (void)unused;
    _cleanup_buf_ struct buf body = BUF_INIT, out = BUF_INIT;
    buf_puts(&body, "0\r\nx-a:");
    while (body.len < S3_CHUNKED_LINE_MAX - 2 + 3)
        buf_putc(&body, 'v');
    size_t len = body.len;
    buf_puts(&body, "\r\n\r\n");
    struct body b = {S3_PAYLOAD_CHUNKS_TRAILER, "", "x-a", 0, body.data, body.len};
    assert_int_equal(decode(&b, b.len, &out, NULL, NULL), S3_OK);
    body.len = len;
    buf_puts(&body, "v\r\n\r\n");
    b.bytes = body.data;
    b.len = body.len;
    assert_int_equal(decode(&b, b.len, &out, NULL, NULL), S3_INVALID_REQUEST);
    assert_int_equal(decode(&b, 1, &out, NULL, NULL), S3_INVALID_REQUEST);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_examples),
        cmocka_unit_test(vectors_of_the_reference),
        cmocka_unit_test(cut_and_changed_bodies),
        cmocka_unit_test(malformed_bodies),
        cmocka_unit_test(signed_bodies_need_their_signatures),
        cmocka_unit_test(a_trailer_behind_the_signature_is_refused),
        cmocka_unit_test(lines_have_a_limit),
    };
    if (argc != 2)
        return 2;
    vectors_path = argv[1];
    return cmocka_run_group_tests(tests, vectors_load, vectors_drop);
}
