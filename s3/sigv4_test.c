#include "s3/sigv4.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "common/cleanup.h"

/* The Signature Version 4 test suite. */
static const struct sigv4_keys suite_keys = {.access = "AKIDEXAMPLE",
                                             .secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};
/* "Examples: Signature Calculations", Amazon S3 API reference. */
static const struct sigv4_keys s3_keys = {.access = "AKIAIOSFODNN7EXAMPLE",
                                          .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};

#define HOST_S3                                  \
    {                                            \
        "host", "examplebucket.s3.amazonaws.com" \
    }
#define EMPTY                                      \
    {                                              \
        "x-amz-content-sha256", SIGV4_EMPTY_SHA256 \
    }
#define DATE_S3                          \
    {                                    \
        "x-amz-date", "20130524T000000Z" \
    }

static const struct row {
    const char *what, *method, *path, *query;
    struct sigv4_header headers[4];
    size_t count;
    bool s3;
    const char *signature;
} rows[] = {
    {"get-vanilla",
     "GET",
     "/",
     "",
     {{"host", "example.amazonaws.com"}, {"x-amz-date", "20150830T123600Z"}},
     2,
     false,
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"get-vanilla-query-order-key-case",
     "GET",
     "/",
     "Param1=value1&Param2=value2",
     {{"host", "example.amazonaws.com"}, {"x-amz-date", "20150830T123600Z"}},
     2,
     false,
     "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
    {"S3 GET Object",
     "GET",
     "/test.txt",
     "",
     {HOST_S3, {"range", "bytes=0-9"}, EMPTY, DATE_S3},
     4,
     true,
     "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
    {"S3 GET Bucket Lifecycle",
     "GET",
     "/",
     "lifecycle=",
     {HOST_S3, EMPTY, DATE_S3},
     3,
     true,
     "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
    {"S3 GET Bucket (List Objects)",
     "GET",
     "/",
     "max-keys=2&prefix=J",
     {HOST_S3, EMPTY, DATE_S3},
     3,
     true,
     "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
};

static void published_examples(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        const struct sigv4_request r = {
            .method = row->method,
            .path = row->path,
            .query = row->query,
            .headers = row->headers,
            .header_count = row->count,
            .payload_sha256 = SIGV4_EMPTY_SHA256,
            .time = row->s3 ? "20130524T000000Z" : "20150830T123600Z",
            .region = "us-east-1",
            .service = row->s3 ? "s3" : "service",
        };
        _cleanup_buf_ struct buf out = BUF_INIT;
        sigv4_authorization(&r, row->s3 ? &s3_keys : &suite_keys, &out);
        const char *at = strstr(buf_str(&out), "Signature=");
        assert_non_null(at);
        assert_string_equal(at + strlen("Signature="), row->signature);
    }
}

static void the_header_names_key_scope_and_headers(void **unused)
{
    (void)unused;
    const struct sigv4_header headers[] = {{"host", "h"}, {"x-amz-date", "20150830T123600Z"}};
    const struct sigv4_request r = {.method = "GET",
                                    .path = "/",
                                    .query = "",
                                    .headers = headers,
                                    .header_count = 2,
                                    .payload_sha256 = "UNSIGNED-PAYLOAD",
                                    .time = "20150830T123600Z",
                                    .region = "eu-west-3",
                                    .service = "s3"};
    _cleanup_buf_ struct buf out = BUF_INIT;
    sigv4_authorization(&r, &suite_keys, &out);
    const char *want =
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/eu-west-3/s3/aws4_request, "
        "SignedHeaders=host;x-amz-date, Signature=";
    assert_int_equal(strncmp(buf_str(&out), want, strlen(want)), 0);
    assert_int_equal(out.len, strlen(want) + 64);
    assert_null(strstr(buf_str(&out), suite_keys.secret));
}

static void times(void **unused)
{
    (void)unused;
    char text[SIGV4_TIME_MAX];
    long long unix_s = 0;
    assert_string_equal(sigv4_time(1369353600, text), "20130524T000000Z");
    assert_true(sigv4_parse_time("20130524T000000Z", &unix_s));
    assert_int_equal(unix_s, 1369353600);
    static const char *const bad[] = {"",
                                      "20130524T000000",
                                      "20130524T000000Z ",
                                      "2013 524T000000Z",
                                      "20130230T000000Z",
                                      "20131324T000000Z",
                                      "20130524T250000Z",
                                      "2013-05-24T00:00"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(sigv4_parse_time(bad[i], &unix_s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_examples),
        cmocka_unit_test(the_header_names_key_scope_and_headers),
        cmocka_unit_test(times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
