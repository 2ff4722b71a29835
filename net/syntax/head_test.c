#include "net/syntax/head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/mem.h"

static int parse(const char *text, size_t len, struct head *out, struct error *err)
{
    static char copy[65536];
    assert_true(len < sizeof copy);
    memcpy(copy, text, len);
    return head_parse(copy, len, out, err);
}

static void test_end(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t end;
    } rows[] = {
        {"GET / HTTP/1.1\r\n\r\n", 18},
        {"GET / HTTP/1.1\r\nA: b\r\n\r\nmore", 24},
        {"GET / HTTP/1.1\n\n", 16},
        {"GET / HTTP/1.1\n\r\nx", 17},
        {"GET / HTTP/1.1\r\n\n", 17},
        {"GET / HTTP/1.1\r\n", 0},
        {"GET / HTTP/1.1\r\n\r", 0},
        {"GET / HTTP/1.1\r\n\rx\n", 0},
        {"", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t len = strlen(rows[i].text);
        size_t scanned = 0;
        assert_int_equal(head_end(rows[i].text, len, &scanned), rows[i].end);
        scanned = 0; /* the same, byte by byte */
        size_t end = 0;
        for (size_t n = 0; n <= len && end == 0; n++)
            end = head_end(rows[i].text, n, &scanned);
        assert_int_equal(end, rows[i].end);
    }
}

static void test_request(void **state)
{
    (void)state;
    static const char text[] = "PUT /a%20b?c=d HTTP/1.0\r\n"
                               "Host: x:1\r\n"
                               "empty:\r\n"
                               "Padded: \t some  words\t \r\n"
                               "!#$%&'*+-.^_`|~09: \xc3\xa4\r\n\r\n";
    struct head head;
    assert_int_equal(parse(text, sizeof text - 1, &head, NULL), 0);
    assert_string_equal(head.method, "PUT");
    assert_string_equal(head.target, "/a%20b?c=d");
    assert_int_equal(head.minor, 0);
    assert_int_equal(head.count, 4);
    static const char *const fields[][2] = {{"Host", "x:1"},
                                            {"empty", ""},
                                            {"Padded", "some  words"},
                                            {"!#$%&'*+-.^_`|~09", "\xc3\xa4"}};
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(head.fields[i].name, fields[i][0]);
        assert_string_equal(head.fields[i].value, fields[i][1]);
    }
}

static void test_malformed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t len;
        int code;
    } rows[] = {
#define ROW(text, code) {text, sizeof text - 1, code}
        ROW("GET / HTTP/1.1\n\n", E_INVALID),
        ROW("GET / HTTP/1.1\r\nA: b\n\r\n", E_INVALID),
        ROW("GET /\r\n\r\n", E_INVALID),
        ROW("GET  / HTTP/1.1\r\n\r\n", E_INVALID),
        ROW("GET / HTTP/1.1 \r\n\r\n", E_INVALID),
        ROW("GET / x HTTP/1.1\r\n\r\n", E_INVALID),
        ROW(" GET / HTTP/1.1\r\n\r\n", E_INVALID),
        ROW("G(T / HTTP/1.1\r\n\r\n", E_INVALID),
        ROW("GET /\t HTTP/1.1\r\n\r\n", E_INVALID),
        ROW("GET /\0 HTTP/1.1\r\n\r\n", E_INVALID),
        ROW("GET / http/1.1\r\n\r\n", E_INVALID),
        ROW("GET / HTTP/11\r\n\r\n", E_INVALID),
        ROW("GET / HTTP/2.0\r\n\r\n", E_HTTP_VERSION),
        ROW("GET / HTTP/1.2\r\n\r\n", E_HTTP_VERSION),
        ROW("GET / HTTP/1.1\r\nA\r\n\r\n", E_INVALID),
        ROW("GET / HTTP/1.1\r\n: b\r\n\r\n", E_INVALID),
        ROW("GET / HTTP/1.1\r\nA : b\r\n\r\n", E_INVALID),
        ROW("GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n", E_INVALID),
        ROW("GET / HTTP/1.1\r\nA: b\rc\r\n\r\n", E_INVALID),
        ROW("GET / HTTP/1.1\r\nA: b\0c\r\n\r\n", E_INVALID),
        ROW("GET / HTTP/1.1\r\nA: b\x7f\r\n\r\n", E_INVALID),
        ROW("GET / HTTP/1.1\r\nA\xc3\xa4: b\r\n\r\n", E_INVALID),
        ROW("\r\n\r\n", E_INVALID),
#undef ROW
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct head head;
        struct error err = ERROR_INIT;
        if (parse(rows[i].text, rows[i].len, &head, &err) != rows[i].code)
            fail_msg("row %zu: %s", i, error_name(err.code));
        assert_true(err.message[0] != '\0');
    }
}

static void test_too_many(void **state)
{
    (void)state;
    static char text[16 * 1024];
    for (int count = HEAD_FIELDS_MAX; count <= HEAD_FIELDS_MAX + 1; count++) {
        size_t len = (size_t)snprintf(text, sizeof text, "GET / HTTP/1.1\r\n");
        for (int i = 0; i < count; i++)
            len += (size_t)snprintf(text + len, sizeof text - len, "N%d: v\r\n", i);
        len += (size_t)snprintf(text + len, sizeof text - len, "\r\n");
        struct head head;
        assert_int_equal(parse(text, len, &head, NULL),
                         count == HEAD_FIELDS_MAX ? 0 : E_HEADERS_TOO_LARGE);
    }
}

static int parse_reply(const char *text, struct head *out)
{
    static char copy[1024];
    size_t len = strlen(text);
    assert_true(len < sizeof copy);
    memcpy(copy, text, len);
    return head_parse_reply(copy, len, out, NULL);
}

static void test_reply(void **state)
{
    (void)state;
    struct head head;
    assert_int_equal(parse_reply("HTTP/1.0 206 Partial\tContent\r\nA: 1\r\na: 2\r\n\r\n", &head),
                     0);
    assert_int_equal(head.status, 206);
    assert_int_equal(head.minor, 0);
    assert_string_equal(head_find(&head, "a"), "1");
    assert_null(head_find(&head, "b"));
    assert_int_equal(parse_reply("HTTP/1.1 404\r\n\r\n", &head), 0); /* no reason is a reason */
    assert_int_equal(head.status, 404);
}

static void test_bad_replies(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "GET / HTTP/1.1\r\n\r\n",      "HTTP/1.1 99 Low\r\n\r\n",       "HTTP/1.1 600 High\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",    "HTTP/1.1  200 OK\r\n\r\n",      "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1 200 O\001K\r\n\r\n", "HTTP/1.1 200 OK\n\n",           "HTTP/1.1 200\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n",     "HTTP/1.1 200 OK\r\n a\r\n\r\n", "\r\n",
    };
    struct head head;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (parse_reply(bad[i], &head) == 0)
            fail_msg("'%s' is taken", bad[i]);
    }
}

static void test_length(void **state)
{
    (void)state;
    static const struct {
        const char *fields;
        int code;
        int64_t length;
        bool chunked;
    } rows[] = {
        {"", 0, -1, false},
        {"Content-Length: 0\r\n", 0, 0, false},
        {"content-length: 9223372036854775807\r\n", 0, INT64_MAX, false},
        {"Content-Length: 7\r\nContent-Length: 7\r\n", 0, 7, false},
        {"Transfer-Encoding: Chunked\r\n", 0, -1, true},
        {"Content-Length: 9223372036854775808\r\n", E_INVALID, 0, false},
        {"Content-Length: +7\r\n", E_INVALID, 0, false},
        {"Content-Length:\r\n", E_INVALID, 0, false},
        {"Content-Length: 7\r\nContent-Length: 8\r\n", E_INVALID, 0, false},
        {"Content-Length: 7\r\nTransfer-Encoding: chunked\r\n", E_INVALID, 0, false},
        {"Transfer-Encoding: gzip, chunked\r\n", E_INVALID, 0, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[200];
        struct head head;
        int64_t length = 0;
        bool chunked = false;
        snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\n%s\r\n", rows[i].fields);
        assert_int_equal(parse_reply(text, &head), 0);
        assert_int_equal(head_length(&head, &length, &chunked, NULL), rows[i].code);
        assert_int_equal(length, rows[i].length);
        assert_int_equal(chunked, rows[i].chunked);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_end),       cmocka_unit_test(test_request),
        cmocka_unit_test(test_malformed), cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_reply),     cmocka_unit_test(test_bad_replies),
        cmocka_unit_test(test_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
