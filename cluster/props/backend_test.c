#include "cluster/props/backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "common/jsonx.h"

static struct backend_spec parse(const char *url, struct arena *a)
{
    struct backend_spec s;
    struct error err = ERROR_INIT;
    if (backend_parse(url, a, &s, &err) != 0)
        fail_msg("%s: %s", url, err.message);
    return s;
}

static void urls_of_s3(void **unused)
{
    (void)unused;
    static const struct {
        const char *url, *bucket, *prefix, *endpoint, *region, *profile;
        bool path_style, is_signed;
    } rows[] = {
        {"s3://b", "b", "", "https://s3.us-east-1.amazonaws.com", "us-east-1", "", false, true},
        {"s3://b/", "b", "", "https://s3.us-east-1.amazonaws.com", "us-east-1", "", false, true},
        {"s3://b/x/y", "b", "x/y/", "https://s3.us-east-1.amazonaws.com", "us-east-1", "", false,
         true},
        {"s3://b/x/?region=eu-west-3", "b", "x/", "https://s3.eu-west-3.amazonaws.com", "eu-west-3",
         "", false, true},
        {"s3://a.b", "a.b", "", "https://s3.us-east-1.amazonaws.com", "us-east-1", "", true, true},
        {"s3://b?endpoint=http://h:9000/", "b", "", "http://h:9000", "us-east-1", "", true, true},
        {"s3://b?endpoint=https%3A%2F%2Fh&style=virtual&auth=none&profile=p1", "b", "", "https://h",
         "us-east-1", "p1", false, false},
        {"s3://b/a%20b", "b", "a b/", "https://s3.us-east-1.amazonaws.com", "us-east-1", "", false,
         true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_(arena_freep)
        struct arena *a = arena_new(256);
        struct backend_spec s = parse(rows[i].url, a);
        assert_string_equal(s.provider, "s3");
        assert_string_equal(s.bucket, rows[i].bucket);
        assert_string_equal(s.prefix, rows[i].prefix);
        assert_string_equal(s.endpoint, rows[i].endpoint);
        assert_string_equal(s.region, rows[i].region);
        assert_string_equal(s.profile, rows[i].profile);
        assert_int_equal(s.path_style, rows[i].path_style);
        assert_int_equal(s.is_signed, rows[i].is_signed);
    }
}

static void urls_of_http(void **unused)
{
    (void)unused;
    _cleanup_(arena_freep)
    struct arena *a = arena_new(256);
    struct backend_spec s = parse("https://data.example.org/sets/imagenet/", a);
    assert_string_equal(s.provider, "http");
    assert_string_equal(s.endpoint, "https://data.example.org/sets/imagenet");
    assert_string_equal(parse("http://127.0.0.1:8000", a).endpoint, "http://127.0.0.1:8000");
    s = parse("gs://b/p", a);
    assert_string_equal(s.provider, "gcs");
    assert_string_equal(s.endpoint, "https://storage.googleapis.com");
    assert_string_equal(s.prefix, "p/");
    assert_true(s.is_signed);
    s = parse("gs://b?auth=none&endpoint=http://h:1/", a);
    assert_string_equal(s.endpoint, "http://h:1");
    assert_false(s.is_signed);
    s = parse("dfc://train/x?endpoint=http://p1:8080/", a);
    assert_string_equal(s.provider, "dfc");
    assert_string_equal(s.bucket, "train");
    assert_string_equal(s.prefix, "x/");
    assert_string_equal(s.endpoint, "http://p1:8080");
}

static void which_have_credentials(void **unused)
{
    (void)unused;
    static const struct {
        const char *url;
        bool is_signed;
    } rows[] = {
        {"s3://b", true},
        {"s3://b?auth=signed", true},
        {"s3://b/x?profile=p", true},
        {"s3://b?endpoint=http://h:9000", true},
        {"s3://b?auth=none", false},
        {"s3://b?auth=none&profile=p", false},
        {"gs://b", true},
        {"gs://b?auth=none", false},
        {"https://h/x", false},
        {"dfc://b?endpoint=http://h:8080", false},
        {"what is no URL", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(backend_is_signed(rows[i].url), rows[i].is_signed);
}

static void what_is_refused(void **unused)
{
    (void)unused;
    static const struct {
        const char *url;
        int code;
    } rows[] = {
        {"", E_INVALID},
        {"b", E_INVALID},
        {"ftp://h/x", E_INVALID},
        {"gcs://b", E_INVALID},
        {"gs://", E_INVALID},
        {"gs://b?region=x", E_INVALID},
        {"gs://b?profile=p", E_INVALID},
        {"gs://b?endpoint=http://me:secret@h", E_INVALID},
        {"gs://b?auth=maybe", E_INVALID},
        {"dfc://b", E_INVALID},
        {"dfc://b?endpoint=h", E_INVALID},
        {"dfc://b?endpoint=http://h&region=x", E_INVALID},
        {"s3://", E_INVALID},
        {"s3:///x", E_INVALID},
        {"s3://a b", E_INVALID},
        {"s3://b/%zz", E_INVALID},
        {"s3://b/%ff", E_INVALID},
        {"s3://b?regoin=x", E_INVALID},
        {"s3://b?region", E_INVALID},
        {"s3://b?region=a&region=b", E_INVALID},
        {"s3://b?region=a/b", E_INVALID},
        {"s3://b?style=odd", E_INVALID},
        {"s3://b?auth=yes", E_INVALID},
        {"s3://b?endpoint=h:9000", E_INVALID},
        {"s3://b?endpoint=http://", E_INVALID},
        {"s3://b?endpoint=http://me:secret@h", E_INVALID},
        {"s3://b?endpoint=http://h?x=y", E_INVALID},
        {"http://", E_INVALID},
        {"http:///x", E_INVALID},
        {"http://me:secret@h/x", E_INVALID},
        {"http://h/x?signature=1", E_INVALID},
        {"http://h/x#y", E_INVALID},
        {"http://h/a b", E_INVALID},
        {"http://h/a\r\nHost: x", E_INVALID},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct error err = ERROR_INIT;
        int code = backend_check(rows[i].url, &err);
        if (code != rows[i].code)
            fail_msg("'%s': %d %s", rows[i].url, code, err.message);
        assert_null(strstr(err.message, "secret"));
    }
}

static int url_of(const char *json, struct buf *out)
{
    _cleanup_json_ json_t *doc = NULL;
    assert_int_equal(json_parse(json, strlen(json), &doc, NULL), 0);
    return backend_url_from_json(doc, out, NULL);
}

static void objects_become_urls(void **unused)
{
    (void)unused;
    static const struct {
        const char *json, *url;
        int code;
    } rows[] = {
        {"{\"provider\": \"s3\", \"bucket\": \"b\"}", "s3://b", 0},
        {"{\"provider\": \"s3\", \"bucket\": \"b\", \"prefix\": \"a b/c\", \"endpoint\": "
         "\"http://h:1\", \"auth\": \"none\"}",
         "s3://b/a%20b/c?endpoint=http://h:1&auth=none", 0},
        {"{\"provider\": \"http\", \"url\": \"http://h/x\"}", "http://h/x", 0},
        {"{\"provider\": \"http\", \"url\": \"s3://h/x\"}", NULL, E_INVALID},
        {"{\"provider\": \"s3\"}", NULL, E_JSON},
        {"{\"provider\": \"s3\", \"bucket\": \"b\", \"secret_key\": \"x\"}", NULL, E_JSON},
        {"{\"provider\": \"gcs\", \"bucket\": \"b\", \"prefix\": \"p\"}", "gs://b/p", 0},
        {"{\"provider\": \"tape\"}", NULL, E_INVALID},
        {"{\"bucket\": \"b\"}", NULL, E_JSON},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_(buf_done)
        struct buf url = BUF_INIT;
        assert_int_equal(url_of(rows[i].json, &url), rows[i].code);
        if (rows[i].code == 0)
            assert_string_equal(buf_str(&url), rows[i].url);
    }
}

static void the_same_objects(void **unused)
{
    (void)unused;
    assert_true(backend_same_objects("s3://b/x", "s3://b/x/?endpoint=http://h&profile=p"));
    assert_false(backend_same_objects("s3://b/x", "s3://b/y"));
    assert_false(backend_same_objects("s3://b", "s3://c"));
    assert_false(backend_same_objects("s3://b", "http://b"));
    assert_false(backend_same_objects("s3://b", "gs://b"));
    assert_true(backend_same_objects("gs://b", "gs://b?endpoint=http://h"));
    assert_true(backend_same_objects("http://h/x/", "http://h/x"));
    assert_false(backend_same_objects("http://h/x", "http://i/x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_of_s3),
        cmocka_unit_test(urls_of_http),
        cmocka_unit_test(which_have_credentials),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(objects_become_urls),
        cmocka_unit_test(the_same_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
