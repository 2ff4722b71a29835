#include "s3/verify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "s3/testing/request_text.h"
#include "s3/testing/vectors.h"

#define SECRET "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
#define NOW 1369353600 /* 20130524T000000Z */
#define AUTHORIZATION                                                                    \
    "Authorization:AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/" \
    "s3/aws4_request,SignedHeaders="
#define HOST "Host:examplebucket.s3.amazonaws.com\n"
#define DATE "x-amz-date:20130524T000000Z\n"
#define EMPTY "x-amz-content-sha256:" SIGV4_EMPTY_SHA256 "\n"

/* All steps, as a server takes them. */
static enum s3_error verify(const char *text, long long now_s, const char *secret,
                            struct s3_failure *why)
{
    _cleanup_arena_ struct arena *a = arena_new(4096);
    const struct s3_request r = request_text(a, text, strlen(text));
    struct s3_query q;
    struct s3_credential c;
    unsigned char key[AUTH_MAC_BYTES];
    enum s3_error e = s3_query_parse(r.query, a, &q, why);
    if (e == S3_OK)
        e = s3_verify_read(&r, &q, a, &c, why);
    if (e != S3_OK || c.signing == S3_SIGNED_NOT)
        return e;
    e = s3_verify_scope(&c, "us-east-1", now_s, why);
    if (e != S3_OK)
        return e;
    sigv4_signing_key(secret, c.time, c.region, c.service, key);
    return s3_verify_signature(&r, &q, &c, key, a, why);
}

/* Amazon S3 API reference: "Signature Calculations for the Authorization Header" in a single chunk,
 * in multiple chunks, with trailers, and "Using Query Parameters". */
static const char *const published[] = {
    "GET\n/test.txt\n\n" HOST "Range:bytes=0-9\n" EMPTY DATE AUTHORIZATION
    "host;range;x-amz-content-sha256;x-amz-date,Signature="
    "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",

    "PUT\n/test$file.text\n\n" HOST "Date:Fri, 24 May 2013 00:00:00 GMT\n" DATE
    "x-amz-storage-class:REDUCED_REDUNDANCY\nx-amz-content-sha256:"
    "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072\n" AUTHORIZATION
    "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class,Signature="
    "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",

    "GET\n/\nlifecycle\n" HOST EMPTY DATE AUTHORIZATION
    "host;x-amz-content-sha256;x-amz-date,Signature="
    "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",

    "GET\n/\nmax-keys=2&prefix=J\n" HOST EMPTY DATE AUTHORIZATION
    "host;x-amz-content-sha256;x-amz-date,Signature="
    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",

    "PUT\n/examplebucket/chunkObject.txt\n\nHost:s3.amazonaws.com\n" DATE
    "x-amz-storage-class:REDUCED_REDUNDANCY\n"
    "x-amz-content-sha256:STREAMING-AWS4-HMAC-SHA256-PAYLOAD\nContent-Encoding:aws-chunked\n"
    "x-amz-decoded-content-length:66560\nContent-Length:66824\n" AUTHORIZATION
    "content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;"
    "x-amz-decoded-content-length;x-amz-storage-class,Signature="
    "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",

    "PUT\n/examplebucket/chunkObject.txt\n\nHost:s3.amazonaws.com\n" DATE
    "x-amz-storage-class:REDUCED_REDUNDANCY\n"
    "x-amz-content-sha256:STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER\n"
    "Content-Encoding:aws-chunked\nx-amz-decoded-content-length:66560\n"
    "x-amz-trailer:x-amz-checksum-crc32c\n" AUTHORIZATION
    "content-encoding;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;"
    "x-amz-storage-class;x-amz-trailer,Signature="
    "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e",

    "GET\n/test.txt\nX-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F"
    "20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&"
    "X-Amz-SignedHeaders=host&X-Amz-Signature="
    "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404\n" HOST,
};

static void published_examples(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
        assert_int_equal(verify(published[i], NOW, SECRET, NULL), S3_OK);
        assert_int_equal(verify(published[i], NOW, SECRET "x", NULL), S3_SIGNATURE);
    }
}

/* Clients should sort the names; what is signed is sorted in any case. */
static void names_of_signed_headers_in_another_order(void **unused)
{
    (void)unused;
    static const char text[] =
        "GET\n/test.txt\n\n" HOST "Range:bytes=0-9\n" EMPTY DATE AUTHORIZATION
        "x-amz-date;range;Host;x-amz-content-sha256,Signature="
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41";
    assert_int_equal(verify(text, NOW, SECRET, NULL), S3_OK);
}

static void vectors_of_the_reference(void **state)
{
    size_t i;
    json_t *row;
    json_array_foreach(vectors_section(state, "requests"), i, row)
    {
        long long now = json_integer_value(json_object_get(row, "now"));
        enum s3_error e = verify(vectors_text(row, "request"), now, SECRET, NULL);
        const char *verdict = e == S3_OK ? "OK" : s3_error_code(e);
        if (strcmp(verdict, vectors_text(row, "verdict")) != 0)
            fail_msg("row %zu: %s: %s", i, verdict, vectors_text(row, "request"));
    }
}

#define SIGNED "host;x-amz-content-sha256;x-amz-date,Signature=00"
#define SCOPE "/20130524/us-east-1/s3/aws4_request"
#define QUERY "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Date=20130524T000000Z&"
#define FIELDS "X-Amz-SignedHeaders=host&X-Amz-Signature=00"

static const struct refused {
    const char *text;
    enum s3_error error;
    const char *words;
} refused[] = {
    {"GET\n/\n\n" HOST EMPTY DATE "Authorization:AWS AKI:sig", S3_INVALID_REQUEST, "s3v4"},
    {"GET\n/\nAWSAccessKeyId=a&Signature=b&Expires=1\n" HOST, S3_INVALID_REQUEST, "s3v4"},
    {"GET\n/\n\n" HOST EMPTY DATE "Authorization:Bearer x", S3_INVALID_ARGUMENT, "type"},
    {"GET\n/\n\n" HOST EMPTY DATE "Authorization:AWS4-ECDSA-P256-SHA256 x", S3_NOT_IMPLEMENTED,
     "ECDSA"},
    {"GET\n/\n\n" HOST EMPTY DATE "Authorization:AWS4-HMAC-SHA256", S3_AUTHORIZATION_MALFORMED,
     "needs"},
    {"GET\n/\n\n" HOST EMPTY DATE
     "Authorization:AWS4-HMAC-SHA256 Credential=a/b,SignedHeaders=" SIGNED,
     S3_AUTHORIZATION_MALFORMED, "ACCESS-KEY"},
    {"GET\n/\n\n" HOST EMPTY DATE "Authorization:AWS4-HMAC-SHA256 Credential=" SCOPE
     ",SignedHeaders=" SIGNED,
     S3_AUTHORIZATION_MALFORMED, "ACCESS-KEY"},
    {"GET\n/\n\n" HOST EMPTY "x-amz-date:20130525T000000Z\n" AUTHORIZATION SIGNED,
     S3_AUTHORIZATION_MALFORMED, "day"},
    {"GET\n/\n\n" HOST EMPTY AUTHORIZATION SIGNED, S3_ACCESS_DENIED, "x-amz-date"},
    {"GET\n/\n\n" HOST EMPTY "x-amz-date:yesterday\n" AUTHORIZATION SIGNED, S3_ACCESS_DENIED,
     "x-amz-date"},
    {"GET\n/\n\n" HOST DATE AUTHORIZATION SIGNED, S3_INVALID_REQUEST, "missing"},
    {"GET\n/\n\n" HOST DATE "x-amz-content-sha256:abc\n" AUTHORIZATION SIGNED, S3_INVALID_ARGUMENT,
     "SHA-256"},
    {"GET\n/\n\n" HOST DATE
     "x-amz-content-sha256:STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD\n" AUTHORIZATION SIGNED,
     S3_NOT_IMPLEMENTED, "ECDSA"},
    {"GET\n/\n\n" HOST EMPTY DATE "x-amz-security-token:t\n" AUTHORIZATION SIGNED, S3_INVALID_TOKEN,
     "tokens"},
    {"GET\n/\n\n" HOST EMPTY DATE AUTHORIZATION "x-amz-content-sha256;x-amz-date,Signature=00",
     S3_ACCESS_DENIED, "host"},
    {"GET\n/\n\n" HOST EMPTY DATE "X-Amz-Acl:private\n" AUTHORIZATION SIGNED, S3_ACCESS_DENIED,
     "X-Amz-Acl"},
    {"GET\n/\n\n" HOST EMPTY DATE AUTHORIZATION "range;" SIGNED, S3_SIGNATURE, "secret key"},
    {"GET\n/\nX-Amz-Signature=1\n" HOST EMPTY DATE AUTHORIZATION SIGNED, S3_INVALID_ARGUMENT,
     "both"},
    {"GET\n/\n" QUERY "X-Amz-Expires=0&X-Amz-Credential=a" SCOPE "&" FIELDS "\n" HOST,
     S3_AUTHORIZATION_QUERY, "604800"},
    {"GET\n/\n" QUERY "X-Amz-Expires=604801&X-Amz-Credential=a" SCOPE "&" FIELDS "\n" HOST,
     S3_AUTHORIZATION_QUERY, "604800"},
    {"GET\n/\n" QUERY "X-Amz-Expires=60&" FIELDS "\n" HOST, S3_AUTHORIZATION_QUERY, "needs"},
    {"GET\n/\nX-Amz-Algorithm=MD5&" FIELDS "\n" HOST, S3_AUTHORIZATION_QUERY, "Algorithm"},
    {"GET\n/\n" QUERY "X-Amz-Expires=60&X-Amz-Credential=a" SCOPE "&" FIELDS "\n" HOST
     "x-amz-content-sha256:UNSIGNED-PAYLOAD",
     S3_ACCESS_DENIED, "must be signed"},
    {"PUT\n/b/k\n\n" HOST "x-amz-content-sha256:STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
     S3_ACCESS_DENIED, "chunks"},
};

static void what_is_malformed_is_refused_with_words(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct s3_failure why = {S3_OK, ""};
        enum s3_error e = verify(refused[i].text, NOW, SECRET, &why);
        if (e != refused[i].error || strstr(why.message, refused[i].words) == NULL)
            fail_msg("row %zu: %s: %s", i, s3_error_code(e), why.message);
    }
}

static void another_region_is_told_the_right_one(void **unused)
{
    (void)unused;
    struct s3_failure why;
    const struct s3_credential c = {.signing = S3_SIGNED_IN_HEADER,
                                    .region = "eu-west-3",
                                    .service = "s3",
                                    .time = "20130524T000000Z"};
    assert_int_equal(s3_verify_scope(&c, "us-east-1", NOW, &why), S3_AUTHORIZATION_MALFORMED);
    assert_string_equal(why.message, "The region 'eu-west-3' is wrong; expecting 'us-east-1'");
    struct s3_credential other = c;
    other.service = "sts";
    assert_int_equal(s3_verify_scope(&other, "eu-west-3", NOW, &why), S3_AUTHORIZATION_MALFORMED);
    assert_int_equal(s3_verify_scope(&c, "eu-west-3", NOW, &why), S3_OK);
}

static void requests_without_credentials(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    static const char text[] = "GET\n/b/k\n\n" HOST;
    const struct s3_request r = request_text(a, text, sizeof text - 1);
    struct s3_query q;
    struct s3_credential c;
    assert_int_equal(s3_query_parse(r.query, a, &q, NULL), S3_OK);
    assert_int_equal(s3_verify_read(&r, &q, a, &c, NULL), S3_OK);
    assert_int_equal(c.signing, S3_SIGNED_NOT);
    assert_int_equal(c.payload, S3_PAYLOAD_UNSIGNED);
    assert_null(c.access_key);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_examples),
        cmocka_unit_test(names_of_signed_headers_in_another_order),
        cmocka_unit_test(vectors_of_the_reference),
        cmocka_unit_test(what_is_malformed_is_refused_with_words),
        cmocka_unit_test(another_region_is_told_the_right_one),
        cmocka_unit_test(requests_without_credentials),
    };
    if (argc != 2)
        return 2;
    vectors_path = argv[1];
    return cmocka_run_group_tests(tests, vectors_load, vectors_drop);
}
