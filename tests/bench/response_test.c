#include "tests/bench/response.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static enum response_result parse(const char *text, struct response *r)
{
    return response_parse(text, strlen(text), r);
}

static void plain_answer(void **state)
{
    (void)state;
    struct response r;
    const char *text = "HTTP/1.1 200 OK\r\nServer: x\r\ncontent-LENGTH:  1024 \r\n\r\nbody";
    assert_int_equal(parse(text, &r), RESPONSE_COMPLETE);
    assert_int_equal(r.status, 200);
    assert_true(r.has_length);
    assert_int_equal(r.content_length, 1024);
    assert_int_equal(r.head_bytes, strlen(text) - 4);
    assert_false(r.close);
    assert_false(r.chunked);
    assert_null(r.location);
}

static void every_cut_is_incomplete(void **state)
{
    (void)state;
    struct response r;
    const char *text = "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
    for (size_t len = 0; len < strlen(text); len++)
        assert_int_equal(response_parse(text, len, &r), RESPONSE_INCOMPLETE);
    assert_int_equal(parse(text, &r), RESPONSE_COMPLETE);
    assert_true(r.close);
}

static void redirect_has_its_location(void **state)
{
    (void)state;
    struct response r;
    const char *url = "http://127.0.0.1:8081/v1/objects/b/o?dfcb=1&dfcv=1.2";
    const char *text = "HTTP/1.1 307 Temporary Redirect\r\nLocation: "
                       "http://127.0.0.1:8081/v1/objects/b/o?dfcb=1&dfcv=1.2\r\n"
                       "Content-Length: 0\r\n\r\n";
    assert_int_equal(parse(text, &r), RESPONSE_COMPLETE);
    assert_int_equal(r.location_len, strlen(url));
    assert_memory_equal(r.location, url, r.location_len);
    struct url_parts u;
    assert_true(url_split(r.location, r.location_len, &u));
    assert_int_equal(u.port, 8081);
    assert_int_equal(u.host_len, strlen("127.0.0.1"));
    assert_memory_equal(u.path, "/v1/objects/b/o?", 16);
    assert_int_equal(u.path_len, strlen("/v1/objects/b/o?dfcb=1&dfcv=1.2"));
}

static void continue_has_no_fields(void **state)
{
    (void)state;
    struct response r;
    assert_int_equal(parse("HTTP/1.1 100 Continue\r\n\r\n", &r), RESPONSE_COMPLETE);
    assert_int_equal(r.status, 100);
    assert_int_equal(r.head_bytes, 25);
}

static void malformed_heads(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "HTTP/2 200\r\n\r\n",
        "ICY 200 OK        \r\n\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "\r\n\r\n",
    };
    struct response r;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_int_equal(parse(texts[i], &r), RESPONSE_MALFORMED);
}

static void urls(void **state)
{
    (void)state;
    struct url_parts u;
    assert_true(url_split("http://h", 8, &u));
    assert_int_equal(u.port, 80);
    assert_int_equal(u.path_len, 0);
    assert_false(url_split("https://h/", 10, &u));
    assert_false(url_split("http://:80/", 11, &u));
    assert_false(url_split("http://h:0/", 11, &u));
    assert_false(url_split("http://h:65536/", 15, &u));
    assert_false(url_split("http://", 7, &u));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_answer),
        cmocka_unit_test(every_cut_is_incomplete),
        cmocka_unit_test(redirect_has_its_location),
        cmocka_unit_test(continue_has_no_fields),
        cmocka_unit_test(malformed_heads),
        cmocka_unit_test(urls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
