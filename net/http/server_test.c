/* The server, asked over bare sockets: routes, names, replies, keep-alive. */
#include "net/http/server.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "common/jsonx.h"
#include "net/testing/server_fixture.h"

/* --- handlers --------------------------------------------------------------------------------- */

static void hello(struct http_request *req)
{
    fixture_count_end(req);
    http_reply_header(req, "X-Note", "two\r\nlines: no");
    http_reply_data(req, 200, "text/plain", "hello", 5);
}

static void show(struct http_request *req)
{
    const char *rest = http_path_param(req, "rest");
    const char *q = http_query(req, "q");
    json_t *doc = json_pack("{s:s, s:s?, s:s?, s:s, s:s}", "name", http_path_param(req, "name"),
                            "rest", rest, "q", q, "path", http_path(req), "peer", http_peer(req));
    http_reply_json(req, 200, doc);
    json_decref(doc);
}

static void file(struct http_request *req)
{
    uint64_t size = query_u64(req, "size", 0);
    uint64_t offset = query_u64(req, "offset", 0);
    char path[] = "/tmp/dfc-server-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    unlink(path);
    _cleanup_free_ char *data = xmalloc(size + 1);
    for (uint64_t i = 0; i < size; i++)
        data[i] = pattern(i);
    assert_int_equal(write(fd, data, size), (ssize_t)size);
    fixture_count_end(req);
    http_reply_header(req, "Content-Type", "x/file");
    http_reply_header(req, "content-length", "1"); /* the connection knows better */
    http_reply_file(req, offset > 0 ? 206 : 200, fd, offset,
                    query_u64(req, "promise", size - offset), NULL);
}

static void fail_with(struct http_request *req)
{
    struct error err;
    error_set(&err, error_from_name(http_query(req, "code")), "bad \"%s\"", "thing");
    http_reply_error(req, &err);
}

static void redirect(struct http_request *req)
{
    http_reply_redirect(req, "http://other/x?y");
}

static const struct http_route routes[] = {
    {.name = "hello",
     .method = HTTP_GET,
     .pattern = "/hello",
     .nets = NET_ALL,
     .right = RIGHT_NONE,
     .begin = hello},
    {.name = "hello_head",
     .method = HTTP_HEAD,
     .pattern = "/hello",
     .nets = NET_ALL,
     .right = RIGHT_NONE,
     .begin = hello},
    {.name = "show",
     .method = HTTP_GET,
     .pattern = "/show/{name}",
     .nets = NET_ALL,
     .right = RIGHT_NONE,
     .begin = show,
     .query = HTTP_PARAMETERS({"q", "text"})},
    {.name = "show_rest",
     .method = HTTP_GET,
     .pattern = "/show/{name}/{rest...}",
     .nets = NET_ALL,
     .right = RIGHT_NONE,
     .begin = show,
     .query = HTTP_PARAMETERS({"quick", "bool"}, {"q", "text"})},
    {.name = "file",
     .method = HTTP_GET,
     .pattern = "/file",
     .nets = NET_ALL,
     .right = RIGHT_NONE,
     .begin = file,
     .query = HTTP_PARAMETERS({"size", "bytes"}, {"offset", "bytes"}, {"promise", "bytes"})},
    {.name = "file_head",
     .method = HTTP_HEAD,
     .pattern = "/file",
     .nets = NET_ALL,
     .right = RIGHT_NONE,
     .begin = file,
     .query = HTTP_PARAMETERS({"size", "bytes"}, {"offset", "bytes"}, {"promise", "bytes"})},
    {.name = "fail",
     .method = HTTP_GET,
     .pattern = "/fail",
     .nets = NET_ALL,
     .right = RIGHT_NONE,
     .begin = fail_with,
     .query = HTTP_PARAMETERS({"code", "of the error"})},
    {.name = "redirect",
     .method = HTTP_GET,
     .pattern = "/redirect",
     .nets = NET_ALL,
     .right = RIGHT_NONE,
     .begin = redirect},
    {.name = "secret",
     .method = HTTP_GET,
     .pattern = "/secret",
     .nets = NET_CONTROL,
     .right = RIGHT_NONE,
     .begin = hello},
    {.name = NULL},
};

static int setup(void **state)
{
    (void)state;
    fixture_start(fixture_config(NET_PUBLIC), routes);
    return 0;
}

/* --- tests ------------------------------------------------------------------------------------ */

static void test_hello(void **state)
{
    (void)state;
    struct wire w = wire_open(fx.port);
    struct wire_reply r;
    for (int i = 0; i < 3; i++) {
        wire_get(&w, "GET", "/hello", &r);
        assert_int_equal(r.status, 200);
        assert_string_equal(r.body.data, "hello");
        assert_string_equal(wire_header(&r, "Dfc-Node"), "n1");
        assert_string_equal(wire_header(&r, "Content-Type"), "text/plain");
        assert_string_equal(wire_header(&r, "X-Note"), "two  lines: no");
        assert_true(strlen(wire_header(&r, "X-Request-Id")) > 5);
        assert_non_null(wire_header(&r, "Date"));
        assert_null(wire_header(&r, "Connection"));
        wire_reply_done(&r);
    }
    wire_get(&w, "HEAD", "/hello", &r);
    assert_int_equal(r.status, 200);
    assert_string_equal(wire_header(&r, "Content-Length"), "5");
    wire_reply_done(&r);
    get(&w, "/hello", 200, "hello"); /* no body was sent in between */
    wire_close(&w);
}

static void test_request_id(void **state)
{
    (void)state;
    static const struct {
        const char *sent;
        bool kept;
    } rows[] = {
        {"abc-123", true},
        {"x", true},
        {"1234567890123456789012345678901234567890123456789012345678901234", true},
        {"12345678901234567890123456789012345678901234567890123456789012345", false},
        {"with space", false},
        {"", false},
        {"\xc3\xa4", false},
    };
    struct wire w = wire_open(fx.port);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        wire_print(&w, "GET /hello HTTP/1.1\r\nHost: x\r\nx-request-ID: %s\r\n\r\n", rows[i].sent);
        struct wire_reply r;
        wire_read(&w, false, &r);
        assert_int_equal(r.status, 200);
        if (rows[i].kept)
            assert_string_equal(wire_header(&r, "X-Request-Id"), rows[i].sent);
        else
            assert_string_not_equal(wire_header(&r, "X-Request-Id"), rows[i].sent);
        wire_reply_done(&r);
    }
    wire_close(&w);
}

static void assert_error(struct wire *w, const char *method, const char *target, int status,
                         const char *code, const char *message)
{
    struct wire_reply r;
    wire_get(w, method, target, &r);
    assert_int_equal(r.status, status);
    assert_string_equal(wire_header(&r, "Content-Type"), "application/json");
    _cleanup_json_ json_t *doc = NULL;
    assert_int_equal(json_parse(r.body.data, r.body.len, &doc, NULL), 0);
    assert_int_equal(json_integer_value(json_object_get(doc, "status")), status);
    assert_string_equal(json_string_value(json_object_get(doc, "code")), code);
    assert_string_equal(json_string_value(json_object_get(doc, "message")), message);
    assert_string_equal(json_string_value(json_object_get(doc, "node")), "n1");
    assert_string_equal(json_string_value(json_object_get(doc, "request_id")),
                        wire_header(&r, "X-Request-Id"));
    if (status == 503)
        assert_string_equal(wire_header(&r, "Retry-After"), "1");
    if (status == 405)
        assert_string_equal(wire_header(&r, "Allow"), "GET, HEAD");
    wire_reply_done(&r);
}

static void test_errors(void **state)
{
    (void)state;
    struct wire w = wire_open(fx.port);
    assert_error(&w, "GET", "/nothing", 404, "no_such_route", "unknown path '/nothing'");
    assert_error(&w, "GET", "/secret", 404, "no_such_route", "unknown path '/secret'");
    assert_error(&w, "DELETE", "/hello", 405, "method_not_allowed", "'/hello' takes GET, HEAD");
    assert_error(&w, "BREW", "/hello", 405, "method_not_allowed", "'/hello' takes GET, HEAD");
    assert_error(&w, "GET", "/fail?code=overloaded", 503, "overloaded", "bad \"thing\"");
    assert_error(&w, "GET", "/fail?code=bucket_not_found", 404, "bucket_not_found",
                 "bad \"thing\"");
    struct wire_reply r;
    wire_get(&w, "GET", "/show/%zz", &r);
    assert_int_equal(r.status, 400);
    wire_reply_done(&r);
    wire_get(&w, "GET", "/show/a%00b", &r);
    assert_int_equal(r.status, 400);
    wire_reply_done(&r);
    wire_get(&w, "GET", "/show/a?q=%", &r);
    assert_int_equal(r.status, 400);
    wire_reply_done(&r);
    assert_error(&w, "GET", "/show/a?size=1", 400, "invalid_argument",
                 "GET /show/{name} has no parameter 'size'; it takes q");
    assert_error(&w, "GET", "/show/a/b?q=1&quack=2", 400, "invalid_argument",
                 "GET /show/{name}/{rest...} has no parameter 'quack' (did you mean 'quick'?); it "
                 "takes quick, q");
    assert_error(&w, "GET", "/hello?q=1", 400, "invalid_argument",
                 "GET /hello has no parameter 'q'; it takes none");
    wire_get(&w, "GET", "/fail?code=not_modified", &r);
    assert_int_equal(r.status, 304);
    wire_reply_done(&r);
    wire_get(&w, "GET", "/redirect", &r);
    assert_int_equal(r.status, 307);
    assert_string_equal(wire_header(&r, "Location"), "http://other/x?y");
    assert_string_equal(wire_header(&r, "Content-Length"), "0");
    wire_reply_done(&r);
    wire_close(&w);
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *target, *name, *rest, *q;
    } rows[] = {
        {"/show/a", "a", NULL, NULL},
        {"/show/a/", "a", NULL, NULL},
        {"/show/a+b%2Bc%20d", "a+b+c d", NULL, NULL},
        {"/show/a%2Fb?q=1+1", "a/b", NULL, "1+1"},
        {"/show/a/b/c?quick=1&q=2&q=3", "a", "b/c", "2"},
        {"/show/a/b/c?dfcx=1&&q=2&", "a", "b/c", "2"},
        {"/show/a/b%2Fc?q", "a", "b/c", ""},
        {"/show/a//c", "a", "/c", NULL},
        {"/show/a/../../etc?q=a%26b%3D", "a", "../../etc", "a&b="},
        {"/show/a/%2e%2e/x", "a", "../x", NULL},
        {"/show/a/b/", "a", "b/", NULL},
        {"/show/\xc3\xa4/%C3%A4?%71=%C3%A4", "\xc3\xa4", "\xc3\xa4", "\xc3\xa4"},
        {"http://host:1/show/a?q=b", "a", NULL, "b"},
    };
    struct wire w = wire_open(fx.port);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wire_reply r;
        wire_get(&w, "GET", rows[i].target, &r);
        assert_int_equal(r.status, 200);
        _cleanup_json_ json_t *doc = NULL;
        assert_int_equal(json_parse(r.body.data, r.body.len, &doc, NULL), 0);
        assert_string_equal(json_string_value(json_object_get(doc, "name")), rows[i].name);
        const char *rest = json_string_value(json_object_get(doc, "rest"));
        const char *q = json_string_value(json_object_get(doc, "q"));
        assert_true((rest == NULL) == (rows[i].rest == NULL));
        assert_true((q == NULL) == (rows[i].q == NULL));
        if (rest != NULL)
            assert_string_equal(rest, rows[i].rest);
        if (q != NULL)
            assert_string_equal(q, rows[i].q);
        assert_non_null(strstr(json_string_value(json_object_get(doc, "peer")), "127.0.0.1:"));
        wire_reply_done(&r);
    }
    wire_close(&w);
}

static void test_files(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 1000, 32 * 1024, 32 * 1024 + 1, 1 << 20, 20 << 20};
    struct wire w = wire_open(fx.port);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char target[64];
        snprintf(target, sizeof target, "/file?size=%zu", sizes[i]);
        struct wire_reply r;
        wire_get(&w, "GET", target, &r);
        assert_int_equal(r.status, 200);
        assert_true(r.complete);
        assert_pattern(&r.body, 0, sizes[i]);
        assert_null(wire_header(&r, "Connection"));
        wire_reply_done(&r);
        wire_get(&w, "HEAD", target, &r);
        char length[32];
        snprintf(length, sizeof length, "%zu", sizes[i]);
        assert_string_equal(wire_header(&r, "Content-Length"), length);
        wire_reply_done(&r);
    }
    struct wire_reply r;
    wire_get(&w, "GET", "/file?size=1000000&offset=123456", &r);
    assert_int_equal(r.status, 206);
    assert_pattern(&r.body, 123456, 1000000 - 123456);
    wire_reply_done(&r);
    wire_get(&w, "GET", "/file?size=100&offset=50&promise=7", &r);
    assert_pattern(&r.body, 50, 7);
    wire_reply_done(&r);
    wire_close(&w);
}

/* A file that is shorter than was promised. */
static void test_short_file(void **state)
{
    (void)state;
    static const struct {
        const char *target, *code;
    } rows[] = {{"/file?size=10&promise=20", "corrupt"},
                {"/file?size=100000&promise=200000", "corrupt"}};
    struct wire w = wire_open(fx.port);
    for (size_t i = 0; i < 2; i++) {
        struct wire_reply r;
        wire_get(&w, "GET", rows[i].target, &r);
        assert_int_equal(r.status, 500);
        assert_non_null(strstr(r.body.data, rows[i].code));
        assert_string_equal(wire_header(&r, "Content-Type"), "application/json");
        wire_reply_done(&r);
    }
    wire_close(&w);
}

static void test_pipelining(void **state)
{
    (void)state;
    struct wire w = wire_open(fx.port);
    enum { DEPTH = 50 };
    for (int i = 0; i < DEPTH; i++)
        wire_print(&w,
                   "GET /show/%d HTTP/1.1\r\nHost: x\r\n\r\n"
                   "GET /file?size=50000 HTTP/1.1\r\nHost: x\r\n\r\n",
                   i);
    for (int i = 0; i < DEPTH; i++) {
        struct wire_reply r;
        wire_read(&w, false, &r);
        char expected[32];
        snprintf(expected, sizeof expected, "\"name\":\"%d\"", i);
        assert_non_null(strstr(r.body.data, expected));
        wire_reply_done(&r);
        wire_read(&w, false, &r);
        assert_pattern(&r.body, 0, 50000);
        wire_reply_done(&r);
    }
    wire_close(&w);
}

static void test_close_and_http_1_0(void **state)
{
    (void)state;
    static const char *const requests[] = {
        "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        "GET /hello HTTP/1.0\r\n\r\n",
    };
    for (size_t i = 0; i < 2; i++) {
        struct wire w = wire_open(fx.port);
        wire_print(&w, "%s", requests[i]);
        struct wire_reply r;
        wire_read(&w, false, &r);
        assert_int_equal(r.status, 200);
        assert_string_equal(r.body.data, "hello");
        assert_false(wire_is_open(&w));
        wire_reply_done(&r);
        wire_close(&w);
    }
}

static void expect_last_reply(struct wire *w)
{
    struct wire_reply r;
    wire_get(w, "GET", "/hello", &r);
    assert_int_equal(r.status, 200);
    const char *connection = wire_header(&r, "Connection");
    assert_non_null(connection);
    assert_string_equal(connection, "close");
    wire_reply_done(&r);
    assert_false(wire_is_open(w));
    wire_close(w);
}

static void test_leave(void **state)
{
    (void)state;
    struct wire kept = wire_open(fx.port);
    get(&kept, "/hello", 200, "hello");
    http_server_leave(fx.server);
    expect_last_reply(&kept);
    struct wire fresh = wire_open(fx.port);
    expect_last_reply(&fresh);
}

static void test_metrics(void **state)
{
    (void)state;
    metric_t *ok = metric_get(M_http_requests_total, "route=\"hello\",code=\"2xx\"");
    metric_t *none = metric_get(M_http_requests_total, "route=\"none\",code=\"4xx\"");
    metric_t *sent = metric_get(M_http_bytes_sent_total, NULL);
    uint64_t ok_before = metric_value(ok);
    uint64_t none_before = metric_value(none);
    uint64_t sent_before = metric_value(sent);
    struct wire w = wire_open(fx.port);
    get(&w, "/hello", 200, "hello");
    get(&w, "/hello", 200, "hello");
    get(&w, "/nowhere", 404, NULL);
    get(&w, "/file?size=70000", 200, NULL);
    wire_close(&w);
    http_server_free(fx.server);
    fx.server = NULL;
    assert_int_equal(metric_value(ok) - ok_before, 2);
    assert_int_equal(metric_value(none) - none_before, 1);
    assert_true(metric_value(sent) - sent_before > 70010);
    assert_int_equal(metric_value(metric_get(M_http_connections, "listener=\"public\"")), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_hello),      TEST(test_request_id),
        TEST(test_errors),     TEST(test_names),
        TEST(test_files),      TEST(test_short_file),
        TEST(test_pipelining), TEST(test_close_and_http_1_0),
        TEST(test_leave),      TEST(test_metrics),
    };
    fx.layer = HTTP_LAYER_EPOLL;
    int failed = cmocka_run_group_tests_name("epoll", tests, NULL, NULL);
    fx.layer = HTTP_LAYER_MICROHTTPD;
    failed += cmocka_run_group_tests_name("microhttpd", tests, NULL, NULL);
    fixture_begin_tls();
    failed += cmocka_run_group_tests_name("tls", tests, NULL, NULL);
    fixture_end_tls();
    return failed;
}
