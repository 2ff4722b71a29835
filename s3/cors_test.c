#include "s3/cors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define CORS(rules) "<CORSConfiguration>" rules "</CORSConfiguration>"
#define RULE(inside) "<CORSRule>" inside "</CORSRule>"
#define ORIGIN(text) "<AllowedOrigin>" text "</AllowedOrigin>"
#define METHOD(text) "<AllowedMethod>" text "</AllowedMethod>"
#define HEADER(text) "<AllowedHeader>" text "</AllowedHeader>"

static const char two_rules[] = CORS(RULE(
    "<ID>one</ID>" METHOD("GET") METHOD("PUT") ORIGIN("http://*.example.com")
        ORIGIN("https://a.org") HEADER("x-amz-*") HEADER(
            "Content-Type") "<ExposeHeader>ETag</ExposeHeader><MaxAgeSeconds>3000</MaxAgeSeconds>")
                                         RULE(METHOD("GET") ORIGIN("*")));

static enum s3_error parse(struct arena *a, const char *body, struct s3_cors *c)
{
    return s3_cors_parse(body, strlen(body), a, c, NULL);
}

static const struct row {
    const char *origin, *method, *headers;
    int rule; /* -1: none */
} rows[] = {
    {"http://www.example.com", "GET", NULL, 0},
    {"http://.example.com", "GET", NULL, 0},
    {"http://example.com", "GET", NULL, 1},
    {"https://a.org", "PUT", NULL, 0},
    {"https://A.org", "PUT", NULL, -1},
    {"https://a.org.evil", "PUT", NULL, -1},
    {"https://a.org", "get", NULL, -1},
    {"https://a.org", "DELETE", NULL, -1},
    {"https://a.org", "PUT", "", 0},
    {"https://a.org", "PUT", "X-Amz-Date, content-type", 0},
    {"https://a.org", "PUT", "x-amz-date,range", -1},
    {"https://b.org", "GET", NULL, 1},
    {"https://b.org", "GET", "range", -1},
};

static void the_first_rule_that_fits_decides(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    struct s3_cors c;
    assert_int_equal(parse(a, two_rules, &c), S3_OK);
    assert_int_equal(c.count, 2);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct s3_cors_rule *rule =
            s3_cors_match(&c, rows[i].origin, rows[i].method, rows[i].headers);
        if (rule != (rows[i].rule < 0 ? NULL : &c.rules[rows[i].rule]))
            fail_msg("row %zu", i);
    }
    assert_false(s3_cors_is_public(&c.rules[0]));
    assert_true(s3_cors_is_public(&c.rules[1]));
    assert_int_equal(c.rules[0].max_age_s, 3000);
    assert_string_equal(c.rules[0].exposed.texts[0], "ETag");
}

/* The texts before and behind a '*' may not share characters. */
static void a_star_stands_for_a_text_of_its_own(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    struct s3_cors c;
    assert_int_equal(parse(a, CORS(RULE(METHOD("GET") ORIGIN("aXa*aXa"))), &c), S3_OK);
    assert_null(s3_cors_match(&c, "aXaXa", "GET", NULL));
    assert_non_null(s3_cors_match(&c, "aXaaXa", "GET", NULL));
}

static void what_is_written_is_what_was_read(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    _cleanup_buf_ struct buf out = BUF_INIT;
    struct s3_cors c;
    assert_int_equal(parse(a, two_rules, &c), S3_OK);
    s3_cors_document(&c, &out);
    const char *inside = strstr(buf_str(&out), "<CORSRule>");
    assert_non_null(inside);
    assert_string_equal(inside, strstr(two_rules, "<CORSRule>"));
}

static void documents_that_are_refused(void **unused)
{
    (void)unused;
    static const struct {
        const char *body;
        enum s3_error error;
    } bad[] = {
        {"", S3_MALFORMED_XML},
        {CORS(""), S3_MALFORMED_XML},
        {CORS(RULE(METHOD("GET"))), S3_MALFORMED_XML},
        {CORS(RULE(ORIGIN("*"))), S3_MALFORMED_XML},
        {CORS(RULE(ORIGIN("") METHOD("GET"))), S3_MALFORMED_XML},
        {CORS(RULE(ORIGIN("*") METHOD("PATCH"))), S3_INVALID_REQUEST},
        {CORS(RULE(ORIGIN("*.*") METHOD("GET"))), S3_INVALID_REQUEST},
        {CORS(RULE(ORIGIN("*") METHOD("GET") HEADER("**"))), S3_INVALID_REQUEST},
        {CORS(RULE(ORIGIN("*") METHOD("GET") "<MaxAgeSeconds>-1</MaxAgeSeconds>")),
         S3_MALFORMED_XML},
        {CORS(RULE(ORIGIN("*") METHOD("GET") "<Else>1</Else>")), S3_MALFORMED_XML},
        {CORS(RULE(ORIGIN("*") METHOD("GET") "<ID>a</ID><ID>b</ID>")), S3_MALFORMED_XML},
        {CORS("<Rule>" ORIGIN("*") METHOD("GET") "</Rule>"), S3_MALFORMED_XML},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        _cleanup_arena_ struct arena *a = arena_new(1024);
        struct s3_cors c;
        assert_int_equal(parse(a, bad[i].body, &c), bad[i].error);
    }
}

static void a_bucket_has_at_most_100_rules(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    _cleanup_buf_ struct buf body = BUF_INIT;
    struct s3_cors c;
    buf_puts(&body, "<CORSConfiguration>");
    for (int i = 0; i < S3_CORS_RULES_MAX; i++)
        buf_puts(&body, RULE(ORIGIN("*") METHOD("GET")));
    size_t len = body.len;
    buf_puts(&body, "</CORSConfiguration>");
    assert_int_equal(parse(a, buf_str(&body), &c), S3_OK);
    body.len = len;
    buf_puts(&body, RULE(ORIGIN("*") METHOD("GET")) "</CORSConfiguration>");
    assert_int_equal(parse(a, buf_str(&body), &c), S3_INVALID_REQUEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_rule_that_fits_decides),
        cmocka_unit_test(a_star_stands_for_a_text_of_its_own),
        cmocka_unit_test(what_is_written_is_what_was_read),
        cmocka_unit_test(documents_that_are_refused),
        cmocka_unit_test(a_bucket_has_at_most_100_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
