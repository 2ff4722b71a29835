#include "api/headers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void add(struct headers *h, const char *line)
{
    assert_true(headers_add_line(h, line, strlen(line)));
}

static void lines_become_headers(void **state)
{
    (void)state;
    struct headers h = {0};
    add(&h, "HTTP/1.1 200 OK\r\n");
    add(&h, "Content-Length:  17 \r\n");
    add(&h, "X-Empty:\r\n");
    add(&h, "etag: \"1:2\"\r\n");
    add(&h, "ETag: second\r\n");
    add(&h, "no header at all\r\n");
    add(&h, "\r\n");
    assert_int_equal(h.count, 4);
    assert_string_equal(headers_get(&h, "ETAG"), "\"1:2\"");
    assert_string_equal(headers_get(&h, "x-empty"), "");
    assert_null(headers_get(&h, "missing"));
    assert_int_equal(headers_get_u64(&h, "content-length"), 17);
    assert_true(headers_get_u64(&h, "etag") == UINT64_MAX);
    struct header one;
    size_t n = 0;
    for (size_t at = 0; headers_next(&h, &at, &one);)
        n++;
    assert_int_equal(n, 4);
    headers_done(&h);
}

static void interim_replies_are_forgotten(void **state)
{
    (void)state;
    struct headers h = {0};
    add(&h, "HTTP/1.1 100 Continue\r\n");
    add(&h, "ETag: interim\r\n");
    add(&h, "\r\n");
    add(&h, "HTTP/1.1 200 OK\r\n");
    assert_null(headers_get(&h, "ETag"));
    headers_done(&h);
}

static void size_is_bounded(void **state)
{
    (void)state;
    struct headers h = {0};
    char line[1000];
    int added = 0;
    memset(line, 'x', sizeof line);
    line[1] = ':';
    while (headers_add_line(&h, line, sizeof line) && added < 1000)
        added++;
    assert_in_range(added, 200, 262);
    headers_done(&h);
}

static void ranges(void **state)
{
    (void)state;
    uint64_t first, last, total;
    assert_true(headers_parse_range("bytes 5-9/100", &first, &last, &total));
    assert_true(first == 5 && last == 9 && total == 100);
    assert_true(headers_parse_range("Bytes 0-0/*", &first, &last, &total));
    assert_true(total == UINT64_MAX);
    static const char *const bad[] = {
        "",
        "bytes */100",
        "bytes 5-/100",
        "bytes -9/100",
        "5-9/100",
        "bytes 9-5/100",
        "bytes 5-100/100",
        "bytes 5-9/100 ",
        "bytes 5-9",
        "bytes 5 - 9/100",
        "bytes 5-9/",
        "bytes +5-9/100",
        "lines 1-2/3",
        "bytes 99999999999999999999-99999999999999999999/1",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(headers_parse_range(bad[i], &first, &last, &total));
    assert_false(headers_parse_range(NULL, &first, &last, &total));
}

static uint64_t retry_after(const char *value, int64_t now_s)
{
    struct headers h = {0};
    char line[100];
    snprintf(line, sizeof line, "Retry-After: %s\r\n", value);
    add(&h, line);
    uint64_t ms = headers_retry_after_ms(&h, now_s);
    headers_done(&h);
    return ms;
}

static void pauses_that_servers_ask_for(void **state)
{
    (void)state;
    struct headers none = {0};
    assert_int_equal(headers_retry_after_ms(&none, 0), 0);
    assert_int_equal(retry_after("3", 0), 3000);
    assert_int_equal(retry_after("0", 0), 0);
    assert_int_equal(retry_after("-1", 0), 0);
    assert_int_equal(retry_after("soon", 0), 0);
    assert_int_equal(retry_after("99999999999999", 0), 86400000);
    assert_int_equal(retry_after("Thu, 01 Jan 1970 00:01:40 GMT", 90), 10000);
    assert_int_equal(retry_after("Thu, 01 Jan 1970 00:01:40 GMT", 200), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_become_headers),
        cmocka_unit_test(interim_replies_are_forgotten),
        cmocka_unit_test(size_is_bounded),
        cmocka_unit_test(ranges),
        cmocka_unit_test(pauses_that_servers_ask_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
