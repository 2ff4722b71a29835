#include "api/uri.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void endpoints(void **state)
{
    (void)state;
    static const char *const good[][2] = {
        {"http://h:1", "http://h:1"},           {"h:1", "http://h:1"},
        {" https://h:1/ ", "https://h:1"},      {"HTTP://h//", "HTTP://h"},
        {"http://[::1]:80", "http://[::1]:80"},
    };
    static const char *const bad[] = {
        "",        " ",          "http://",    "http:///x", "http://h/path", "http://h?q",
        "ftp://h", "http://a b", "http://u@h", "nonsense",  ":80",           "http://h\r\nX: y",
    };
    struct dfc_error err;
    char *out;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(uri_endpoint(good[i][0], strlen(good[i][0]), &out, &err), DFC_OK);
        assert_string_equal(out, good[i][1]);
        free(out);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(uri_endpoint(bad[i], strlen(bad[i]), &out, &err), DFC_INVALID);
        assert_non_null(strstr(err.message, "is not an endpoint"));
    }
}

static void names_cannot_become_other_calls(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    struct dfc_error err;
    assert_int_equal(uri_object(&b, "a?b", "c/../d#e%2f ü", &err), DFC_OK);
    assert_string_equal(buf_str(&b), "/v1/objects/a%3Fb/c/../d%23e%252f%20%C3%BC");
    assert_int_equal(uri_object(&b, "", "k", &err), DFC_INVALID);
    assert_int_equal(uri_object(&b, NULL, "k", &err), DFC_INVALID);
    assert_int_equal(uri_object(&b, "a/b", "k", &err), DFC_INVALID);
    assert_int_equal(uri_object(&b, "b", "", &err), DFC_INVALID);
    assert_string_equal(err.code, "invalid_name");
    buf_done(&b);
}

static void queries(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    buf_puts(&b, "/p");
    uri_query(&b, "none", NULL);
    uri_query(&b, "empty", "");
    uri_query(&b, "prefix", "a/b&c=d");
    uri_query_u64(&b, "limit", 10);
    assert_string_equal(buf_str(&b), "/p?prefix=a%2Fb%26c%3Dd&limit=10");
    buf_done(&b);
}

static void redirects(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        {"http://p:1/v1/x?y", "http://t:2/v1/x?y&z", "http://t:2/v1/x?y&z"},
        {"http://p:1/v1/x?y", "/z", "http://p:1/z"},
        {"https://p:1", "/z", "https://p:1/z"},
        {"http://p:1/", "//h/z", NULL},
        {"http://p:1/", "ftp://h/z", NULL},
        {"http://p:1/", "z", NULL},
        {"http://p:1/", "", NULL},
        {"http://p:1/", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *to = uri_resolve(rows[i][0], rows[i][1]);
        if (rows[i][2] == NULL)
            assert_null(to);
        else
            assert_string_equal(to, rows[i][2]);
        free(to);
    }
}

static void what_is_told_of_urls(void **state)
{
    (void)state;
    assert_true(uri_is_tls("HTTPS://h:1/x"));
    assert_false(uri_is_tls("http://https://h"));
    assert_false(uri_is_tls("h:1"));
    char *shown = uri_for_people("http://h:1/v1/x?dfca=proof");
    assert_string_equal(shown, "http://h:1/v1/x");
    free(shown);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endpoints),
        cmocka_unit_test(names_cannot_become_other_calls),
        cmocka_unit_test(queries),
        cmocka_unit_test(redirects),
        cmocka_unit_test(what_is_told_of_urls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
