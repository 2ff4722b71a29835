/* Requests that are too long, or malformed: each is refused, and the connection ends. */
#include "net/syntax/head.h"
#include "net/http/server.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/clock.h"
#include "net/testing/certificate.h"
#include "net/testing/hello_fixture.h"
#include "net/tls/tls.h"

static struct tls *tls; /* or NULL */

static const struct http_route routes[] = {
    {.name = "hello",
     .method = HTTP_GET,
     .pattern = "/hello",
     .nets = 1,
     .right = RIGHT_NONE,
     .begin = hello,
     .query = HTTP_PARAMETERS({"q", "passed over"})},
    {.name = "put",
     .method = HTTP_PUT,
     .pattern = "/put",
     .nets = 1,
     .right = RIGHT_NONE,
     .begin = put},
    {.name = NULL},
};

static int start(void **state)
{
    static const struct http_route *const tables[] = {routes, NULL};
    const struct http_server_config config = {
        .node = "n1",
        .address = "127.0.0.1",
        .net = NET_PUBLIC,
        .threads = 2,
        .connections_max = 100,
        .connection_memory = 32 * 1024,
        .idle_timeout_s = 30,
        .routes = tables,
        .tls = tls,
        .tls_handshakes_max = 100,
    };
    (void)state;
    begun = cut = ended = 0;
    struct error err = ERROR_INIT;
    if (http_server_new(&config, &server, &err) != 0)
        fail_msg("%s", err.message);
    port = http_server_port(server);
    return 0;
}

/* So that what was sent on another connection before has been looked at: each of the two threads
 * has had a turn. */
static void get_hello_elsewhere(void)
{
    struct wire others[2] = {wire_open(port), wire_open(port)};
    for (int i = 0; i < 2; i++) {
        get_hello(&others[i]);
        wire_close(&others[i]);
    }
}

static void send_letters(struct wire *w, size_t len)
{
    static char letters[1024];
    memset(letters, 'x', sizeof letters);
    for (; len > 0; len -= len < sizeof letters ? len : sizeof letters)
        wire_try_send(w, letters, len < sizeof letters ? len : sizeof letters);
}

static void test_long_targets(void **state)
{
    (void)state;
    static const size_t lens[] = {16385, 20000, 40000, 300000, 10000000};
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        struct wire w = wire_open(port);
        send_text(&w, "GET /");
        send_letters(&w, lens[i]);
        send_text(&w, " HTTP/1.1\r\nHost: x\r\n\r\n");
        wire_read_error(&w, 414, "uri_too_long");
        assert_false(wire_is_open(&w));
        wire_close(&w);
    }
    struct wire w = wire_open(port);
    wire_print(&w, "GET /hello?q=");
    send_letters(&w, 16000);
    wire_print(&w, " HTTP/1.1\r\nHost: x\r\n\r\n");
    struct wire_reply r;
    wire_read(&w, false, &r);
    assert_int_equal(r.status, 200);
    wire_reply_done(&r);
    wire_close(&w);
}

static void test_long_headers(void **state)
{
    (void)state;
    static const size_t lens[] = {17000, 30000, 300000, 10000000};
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        struct wire w = wire_open(port);
        send_text(&w, "GET /hello HTTP/1.1\r\nHost: x\r\nX: ");
        send_letters(&w, lens[i]);
        send_text(&w, "\r\n\r\n");
        wire_read_error(&w, 431, "headers_too_large");
        assert_false(wire_is_open(&w));
        wire_close(&w);
    }
    struct wire w = wire_open(port);
    wire_print(&w, "GET /hello HTTP/1.1\r\nHost: x\r\n");
    for (int i = 0; i < HEAD_FIELDS_MAX; i++)
        wire_print(&w, "X%d: y\r\n", i);
    wire_print(&w, "\r\n");
    wire_read_error(&w, 431, "headers_too_large");
    wire_close(&w);
}

static void test_malformed_requests(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int status;
        const char *code;
    } rows[] = {
        {"GET /hello HTTP/1.1\r\n\r\n", 400, "invalid_argument"}, /* no Host */
        {"GET /hello HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400, "invalid_argument"},
        {"GET /hello HTTP/1.1\r\nHost: a\r\nAuthorization: a\r\nauthorization: b\r\n\r\n", 400,
         "invalid_argument"},
        {"GET /hello HTTP/1.1\nHost: a\n\n", 400, "invalid_argument"},
        {"GET /hello\r\n\r\n", 400, "invalid_argument"},
        {"\x16\x03\x01 hello TLS\r\n\r\n", 400, "invalid_argument"},
        {"\x16\x03\x01\x02", 400, "invalid_argument"}, /* and not when a line has ended */
        {"GET /hello HTTP/3.0\r\nHost: a\r\n\r\n", 505, "http_version"},
        {"GET /hello HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n", 400, "invalid_argument"},
        {"GET /hello#x HTTP/1.1\r\nHost: a\r\n\r\n", 400, "invalid_argument"},
        {"GET /hello?a#x HTTP/1.1\r\nHost: a\r\n\r\n", 400, "invalid_argument"},
        {"GET http://a?b=/hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 404,
         "no_such_route"},
        {"PUT /put HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: "
         "chunked\r\n\r\n0\r\n\r\n",
         400, "invalid_argument"},
        {"GET /nothing HTTP/1.1\r\nHost: a\r\nConnection: x\r\nConnection: close\r\n\r\n", 404,
         "no_such_route"},
        {"PUT /put HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n", 400, "invalid_argument"},
        {"PUT /put HTTP/1.1\r\nHost: a\r\nContent-Length: 5x\r\n\r\n", 400, "invalid_argument"},
        {"PUT /put HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\n", 400, "invalid_argument"},
        {"PUT /put HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", 400,
         "invalid_argument"},
        {"PUT /put HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX", 400,
         "invalid_argument"},
        {"PUT /put HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nhello", 400,
         "invalid_argument"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wire w = wire_open(port);
        wire_send(&w, rows[i].text, strlen(rows[i].text));
        wire_read_error(&w, rows[i].status, rows[i].code);
        assert_false(wire_is_open(&w));
        wire_close(&w);
    }
    wait_for(&ended, 2); /* the chunked ones had begun */
    assert_int_equal(begun, 2);
    assert_int_equal(cut, 2);
    struct wire w = wire_open(port); /* empty lines before a request are passed over */
    wire_print(&w, "\r\n\r\n");
    get_hello(&w);
    wire_print(&w, "\r\n");
    get_hello(&w);
    static const char *const pieces[] = {"\r", "\n\r", "\nGET /hello HTTP/1.1\r\nHost: x\r\n",
                                         "\r\n"};
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        wire_print(&w, "%s", pieces[i]);
        get_hello_elsewhere();
    }
    read_hello(&w);
    wire_close(&w);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_long_targets),
        TEST(test_long_headers),
        TEST(test_malformed_requests),
    };
    int failed = cmocka_run_group_tests_name("plain", tests, NULL, NULL);
    tls = certificate_tls();
    wire_speaks_tls = true;
    failed += cmocka_run_group_tests_name("tls", tests, NULL, NULL);
    tls_free(tls);
    return failed;
}
