/* Which requests are a client's, and which a strange web page's. */
#include "net/http/visitor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct visitor_rules *rules(const char *advertise, const char *hosts, const char *origins)
{
    struct visitor_rules *r = NULL;
    struct error err = ERROR_INIT;
    if (visitor_rules_new(advertise, hosts, origins, &r, &err) != 0)
        fail_msg("%s", err.message);
    return r;
}

static void assert_host(const struct visitor_rules *r, const char *host, int code)
{
    const struct visitor v = {.host = host};
    if (visitor_check(r, &v, NULL) != code)
        fail_msg("Host '%s': not %d", host != NULL ? host : "(none)", code);
}

static void test_hosts(void **state)
{
    (void)state;
    struct visitor_rules *none = rules("", "", "");
    struct visitor_rules *some = rules("node1.example", "dfc, *.svc.local ,Front", "");
    struct visitor_rules *any = rules("", "*", "");
    static const char *const always[] = {
        "127.0.0.1", "10.1.2.3:8080", "[::1]",      "[2001:db8::1]:80",
        "localhost", "LOCALHOST:1",   "localhost.", NULL};
    static const char *const named[] = {"node1.example", "Node1.Example.:8080", "dfc:8080",
                                        "front",         "a.svc.local",         "a.b.svc.local:1"};
    static const char *const foreign[] = {"evil.example",
                                          "evil.example:8080",
                                          "svc.local",
                                          "xsvc.local",
                                          "dfc.evil",
                                          "127.0.0.1.evil",
                                          "",
                                          ":80",
                                          "1",
                                          "localhost.evil",
                                          "[evil]",
                                          "notdfc"};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) {
        assert_host(none, always[i], 0);
        assert_host(some, always[i], 0);
    }
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        assert_host(none, named[i], E_HOST);
        assert_host(some, named[i], 0);
    }
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        assert_host(some, foreign[i], E_HOST);
        assert_host(any, foreign[i], 0);
    }
    visitor_rules_free(none);
    visitor_rules_free(some);
    visitor_rules_free(any);
}

/* Probes and collectors call by whatever name; a page's browser must not show, nor may it write. */
static void test_open_calls_take_any_host(void **state)
{
    (void)state;
    struct visitor_rules *r = rules("", "", "");
    static const struct {
        struct visitor v;
        int code;
    } rows[] = {
        {{.is_open = true, .only_reads = true}, 0},
        {{.is_open = false, .only_reads = true}, E_HOST},
        {{.is_open = true, .only_reads = false}, E_HOST},
        {{.is_open = true, .only_reads = true, .origin = "http://evil.example"}, E_HOST},
        {{.is_open = true, .only_reads = true, .fetch_site = "same-origin"}, E_HOST},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct visitor v = rows[i].v;
        v.host = "probe.example:8080";
        if (visitor_check(r, &v, NULL) != rows[i].code)
            fail_msg("row %zu", i);
    }
    visitor_rules_free(r);
}

static void test_pages(void **state)
{
    (void)state;
    struct visitor_rules *r = rules("", "", "https://console.example:8443, http://b");
    static const struct {
        struct visitor v;
        int code;
    } rows[] = {
        {{.origin = NULL}, 0},
        {{.origin = "http://10.0.0.1:8080"}, 0},
        {{.origin = "https://10.0.0.1:8080"}, 0},
        {{.origin = "https://console.example:8443"}, 0},
        {{.origin = "HTTP://B", .fetch_site = "cross-site"}, 0},
        {{.origin = "http://10.0.0.1"}, E_ORIGIN},
        {{.origin = "http://10.0.0.1:80800"}, E_ORIGIN},
        {{.origin = "http://evil.example"}, E_ORIGIN},
        {{.origin = "http://evil.example", .only_reads = true}, E_ORIGIN},
        {{.origin = "null"}, E_ORIGIN},
        {{.origin = ""}, E_ORIGIN},
        {{.origin = "file://10.0.0.1:8080"}, E_ORIGIN},
        {{.fetch_site = "cross-site"}, E_ORIGIN},
        {{.fetch_site = "same-site"}, E_ORIGIN},
        {{.fetch_site = "x"}, E_ORIGIN},
        {{.fetch_site = "cross-site", .only_reads = true}, 0},
        {{.fetch_site = "same-origin"}, 0},
        {{.fetch_site = "none"}, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct visitor v = rows[i].v;
        v.host = "10.0.0.1:8080";
        if (visitor_check(r, &v, NULL) != rows[i].code)
            fail_msg("row %zu", i);
    }
    const struct visitor without_host = {.origin = "http://10.0.0.1"};
    assert_int_equal(visitor_check(r, &without_host, NULL), E_ORIGIN);
    visitor_rules_free(r);
}

static void test_types(void **state)
{
    (void)state;
    struct visitor_rules *r = rules("", "", "");
    static const struct {
        const char *type;
        bool browser, json;
        int code;
    } rows[] = {
        {NULL, false, true, 0},
        {"application/x-www-form-urlencoded", false, true, 0}, /* curl -d, urllib */
        {"text/plain", false, true, 0},
        {"text/plain", true, false, 0}, /* an object's bytes */
        {"application/json", true, true, 0},
        {"Application/JSON; charset=utf-8", true, true, 0},
        {"application/x-www-form-urlencoded", true, true, E_MEDIA_TYPE},
        {"text/plain", true, true, E_MEDIA_TYPE},
        {"multipart/form-data; boundary=x", true, true, E_MEDIA_TYPE},
        {"text/plain; x=application/json", true, true, E_MEDIA_TYPE},
        {"application/jsonx", true, true, E_MEDIA_TYPE},
        {NULL, true, true, E_MEDIA_TYPE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct visitor v = {.host = "127.0.0.1:80",
                                  .content_type = rows[i].type,
                                  .origin = rows[i].browser ? "http://127.0.0.1:80" : NULL,
                                  .sends_json = rows[i].json};
        const struct visitor w = {.host = "127.0.0.1:80",
                                  .content_type = rows[i].type,
                                  .fetch_site = rows[i].browser ? "same-origin" : NULL,
                                  .sends_json = rows[i].json};
        if (visitor_check(r, &v, NULL) != rows[i].code ||
            visitor_check(r, &w, NULL) != rows[i].code)
            fail_msg("row %zu", i);
    }
    visitor_rules_free(r);
}

static void test_rows_that_are_none(void **state)
{
    (void)state;
    static const char *const hosts[] = {"a:80", "http://a", "a b",   ",",  "a,,b",
                                        "*.",   "a*",       "[::1]", "*.*"};
    static const char *const origins[] = {"a",           "http://", "http://a/", "*",
                                          "https://a,b", "ftp://a", "http://*.a"};
    struct visitor_rules *r = NULL;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        assert_int_equal(visitor_rules_new("", hosts[i], "", &r, NULL), E_INVALID);
    for (size_t i = 0; i < sizeof origins / sizeof *origins; i++)
        assert_int_equal(visitor_rules_new("", "", origins[i], &r, NULL), E_INVALID);
    assert_null(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_open_calls_take_any_host),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_rows_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
