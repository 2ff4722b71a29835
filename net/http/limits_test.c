/* The server at its limits: too much, too slow, too late.  Too long: http_heads_test.c. */
#include "net/http/server.h"

#include <pthread.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "common/tsan.h"
#include "net/testing/certificate.h"
#include "net/testing/hello_fixture.h"
#include "net/tls/tls.h"

static struct tls *tls;                   /* or NULL */
static struct http_request *_Atomic held; /* parked until the test replies */

static void big(struct http_request *req)
{
    begun++;
    http_on_end(req, on_end, NULL);
    size_t len = 64 << 20;
    char *data = xcalloc(1, len);
    http_reply_data(req, 200, "text/plain", data, len);
    free(data);
}

static void hold(struct http_request *req)
{
    begun++;
    http_on_end(req, on_end, NULL);
    held = req;
}

static ssize_t no_data(void *ctx, char *out, size_t max)
{
    (void)ctx;
    (void)out;
    (void)max;
    return 0;
}

static void stream_gone(void *ctx)
{
    (void)ctx;
    ended++;
}

static void silent_stream(struct http_request *req)
{
    static const struct http_stream_ops ops = {.read = no_data, .free = stream_gone};
    begun++;
    http_reply_stream(req, 200, -1, &ops, NULL);
}

static size_t take_none(struct http_request *req, void *ctx, const char *data, size_t len)
{
    (void)req;
    (void)ctx;
    (void)data;
    (void)len;
    return 0;
}

static void put_paused(struct http_request *req)
{
    static const struct http_body_ops ops = {.data = take_none, .end = body_end, .cut = body_cut};
    begun++;
    http_on_end(req, on_end, NULL);
    http_take_body(req, &ops, NULL);
}

static atomic_bool patience;

static bool is_patient(void *ctx)
{
    (void)ctx;
    return patience;
}

static void patient_big(struct http_request *req)
{
    http_be_patient(req, is_patient, NULL);
    big(req);
}

static void patient_put(struct http_request *req)
{
    http_be_patient(req, is_patient, NULL);
    put(req);
}

static void put_held(struct http_request *req)
{
    put(req);
    held = req;
}

static const struct http_route routes[] = {
    {.name = "hello",
     .method = HTTP_GET,
     .pattern = "/hello",
     .nets = NET_PUBLIC | NET_CONTROL,
     .right = RIGHT_NONE,
     .begin = hello,
     .query = HTTP_PARAMETERS({"q", "passed over"})},
    {.name = "big",
     .method = HTTP_GET,
     .pattern = "/big",
     .nets = 1,
     .right = RIGHT_NONE,
     .begin = big},
    {.name = "hold",
     .method = HTTP_GET,
     .pattern = "/hold",
     .nets = 1,
     .right = RIGHT_NONE,
     .begin = hold,
     .query = HTTP_PARAMETERS({"q", "passed over"})},
    {.name = "silent",
     .method = HTTP_GET,
     .pattern = "/silent",
     .nets = 1,
     .right = RIGHT_NONE,
     .begin = silent_stream},
    {.name = "put",
     .method = HTTP_PUT,
     .pattern = "/put",
     .nets = 1,
     .right = RIGHT_NONE,
     .begin = put},
    {.name = "patient_big",
     .method = HTTP_GET,
     .pattern = "/patient/big",
     .nets = 1,
     .right = RIGHT_NONE,
     .begin = patient_big},
    {.name = "patient_put",
     .method = HTTP_PUT,
     .pattern = "/patient/put",
     .nets = 1,
     .right = RIGHT_NONE,
     .begin = patient_put},
    {.name = "held",
     .method = HTTP_PUT,
     .pattern = "/held",
     .nets = 1,
     .right = RIGHT_NONE,
     .begin = put_held},
    {.name = "paused",
     .method = HTTP_PUT,
     .pattern = "/paused",
     .nets = 1,
     .right = RIGHT_NONE,
     .begin = put_paused},
    {.name = NULL},
};

static void start_on(enum http_net net, unsigned connections_max, unsigned idle_timeout_s,
                     uint64_t head_timeout_ms)
{
    static const struct http_route *const tables[] = {routes, NULL};
    const struct http_server_config config = {
        .node = "n1",
        .address = "127.0.0.1",
        .net = net,
        .threads = 2,
        .connections_max = connections_max,
        .connection_memory = 32 * 1024,
        .idle_timeout_s = idle_timeout_s,
        .head_timeout_ms = head_timeout_ms,
        .routes = tables,
        .tls = tls,
        .tls_handshakes_max = 256,
    };
    begun = cut = ended = 0;
    held = NULL;
    struct error err = ERROR_INIT;
    if (http_server_new(&config, &server, &err) != 0)
        fail_msg("%s", err.message);
    port = http_server_port(server);
}

static void start(unsigned connections_max, unsigned idle_timeout_s)
{
    start_on(NET_PUBLIC, connections_max, idle_timeout_s, 0);
}

/* --- too much --------------------------------------------------------------------------------- */

/* A connection of its own: false where it is refused. */
static bool is_served(void)
{
    struct wire w = wire_open(port);
    send_text(&w, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    bool served = wire_is_open(&w) && strncmp(w.in.data, "HTTP/1.1 200 ", 13) == 0;
    wire_close(&w);
    return served;
}

static void test_connections_beyond_the_limit(void **state)
{
    (void)state;
    enum { MAX = 50, ONE_ADDRESS = 37 };
    start_on(NET_CONTROL, MAX, 30, 0); /* where silent ones do not give way (room.h) */
    metric_t *overload = metric_get(M_http_overload_total, NULL);
    uint64_t before = metric_value(overload);
    struct wire w[MAX];
    for (int i = 0; i < MAX; i++) {
        w[i] = wire_open_from(port, (uint32_t)(INADDR_LOOPBACK + i / ONE_ADDRESS));
        get_hello(&w[i]);
    }
    for (int i = 0; i < 20; i++)
        wire_assert_refused(port, (uint32_t)(INADDR_LOOPBACK + 1 + i));
    assert_int_equal(metric_value(overload) - before, 20);
    for (int i = 0; i < MAX; i++) {
        get_hello(&w[i]); /* those that are in go on */
        wire_close(&w[i]);
    }
    for (int tries = 0; !is_served(); tries++) /* and there is room again */
        assert_true(tries < 1000);
}

/* One client that holds all that it can get leaves room for others. */
static void test_connections_of_one_address(void **state)
{
    (void)state;
    enum { MAX = 20, ONE_ADDRESS = 15 };
    start(MAX, 30);
    struct wire w[MAX];
    for (int i = 0; i < ONE_ADDRESS; i++) {
        w[i] = wire_open(port);
        get_hello(&w[i]);
    }
    wire_assert_refused(port, INADDR_LOOPBACK);
    for (int i = ONE_ADDRESS; i < MAX; i++) {
        w[i] = wire_open_from(port, INADDR_LOOPBACK + 1);
        get_hello(&w[i]);
    }
    for (int i = 0; i < MAX; i++)
        wire_close(&w[i]);
}

static void test_two_thousand_connections(void **state)
{
    (void)state;
    enum { MANY = 2000 / TSAN_STRIDE };
    const struct rlimit files = {.rlim_cur = 2 * MANY + 100, .rlim_max = 2 * MANY + 100};
    struct rlimit now;
    getrlimit(RLIMIT_NOFILE, &now);
    if (now.rlim_cur < files.rlim_cur && setrlimit(RLIMIT_NOFILE, &files) != 0)
        skip();
    start(2 * MANY, 3600); /* the first are idle until the last has shaken hands */
    static struct wire w[MANY];
    for (int i = 0; i < MANY; i++)
        w[i] = wire_open(port);
    /* Two of them ask for much and read nothing, the others are served. */
    for (int i = 0; i < 2; i++)
        wire_print(&w[i], "GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
    for (int round = 0; round < 2; round++) {
        for (int i = 2; i < MANY; i++)
            get_hello(&w[i]);
    }
    for (int i = 0; i < MANY; i++)
        wire_close(&w[i]);
}

/* --- too slow --------------------------------------------------------------------------------- */

static void test_timeouts(void **state)
{
    (void)state;
    start(100, 1);
    struct wire idle = wire_open(port);
    get_hello(&idle);
    struct wire half_head = wire_open(port);
    wire_print(&half_head, "GET /hello HTTP/1.1\r\nHo");
    struct wire half_body = wire_open(port);
    wire_print(&half_body, "PUT /put HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe");
    struct wire no_reader = wire_open(port);
    wire_print(&no_reader, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
    struct wire parked = wire_open(port);
    wire_print(&parked, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    struct wire dripping = wire_open(port); /* its head never ends, though it moves */
    wire_print(&dripping, "GET /hello HTTP/1.1\r\n");
    struct wire blank = wire_open(port); /* it sends nothing but empty lines */
    uint64_t begin = clock_ms();
    while (wire_peek(&dripping, 100) != 1 && clock_ms() - begin < 10000) {
        send_text(&dripping, "A: b\r\n");
        send_text(&blank, "\r\n");
    }
    wire_read_error(&dripping, 408, "request_timeout");
    assert_true(clock_ms() - begin < 5000);
    wire_close(&dripping);
    while (wire_peek(&blank, 100) < 0 && clock_ms() - begin < 10000)
        send_text(&blank, "\r\n");
    assert_false(wire_is_open(&blank));
    wire_close(&blank);
    assert_false(wire_is_open(&idle));
    wire_close(&idle);
    wire_read_error(&half_head, 408, "request_timeout");
    wire_close(&half_head);
    wire_read_error(&half_body, 408, "request_timeout");
    assert_int_equal(cut, 1);
    wire_close(&half_body);
    wait_for(&ended, 2); /* that one's and the one whose client does not read */
    wire_close(&no_reader);
    http_reply_empty(held, 204); /* what is parked waits for its handler, not for the clock */
    struct wire_reply r;
    wire_read(&parked, false, &r);
    assert_int_equal(r.status, 204);
    wire_reply_done(&r);
    wire_close(&parked);
}

/* The first head has a time of its own, from the connection's beginning; later ones do not. */
static void test_the_first_head_has_its_time(void **state)
{
    (void)state;
    start_on(NET_PUBLIC, 100, 30, 200);
    struct wire spoke = wire_open(port);
    get_hello(&spoke);
    struct wire nothing = wire_open(port);
    struct wire half_head = wire_open(port);
    wire_print(&half_head, "GET /hello HTTP/1.1\r\nHo");
    uint64_t begin = clock_ms();
    assert_false(wire_is_open(&nothing));
    wire_read_error(&half_head, 408, "request_timeout");
    assert_true(clock_ms() - begin < 10000);
    wire_print(&spoke, "GET /hello HTTP/1.1\r\nHo");
    struct wire later = wire_open(port); /* longer than spoke's head has been under way */
    assert_false(wire_is_open(&later));
    wire_print(&spoke, "st: x\r\n\r\n");
    struct wire_reply r;
    wire_read(&spoke, false, &r);
    assert_int_equal(r.status, 200);
    wire_reply_done(&r);
    wire_close(&spoke);
    wire_close(&nothing);
    wire_close(&half_head);
    wire_close(&later);
}

/* A stream between nodes, whose other end waits for a third, may be silent for longer than that. */
static void test_patience(void **state)
{
    (void)state;
    start(100, 1);
    patience = true;
    struct wire reader = wire_open(port);
    wire_print(&reader, "GET /patient/big HTTP/1.1\r\nHost: x\r\n\r\n");
    struct wire writer = wire_open(port);
    wire_print(&writer, "PUT /patient/put HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe");
    struct wire given_up = wire_open(port);
    wire_print(&given_up, "PUT /put HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe");
    for (int i = 0; i < 2; i++) { /* twice the timeout, by a connection that has no patience */
        wire_read_error(&given_up, 408, "request_timeout");
        wire_close(&given_up);
        given_up = wire_open(port);
        wire_print(&given_up, "PUT /put HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe");
    }
    wire_close(&given_up);
    struct wire_reply r;
    wire_print(&writer, "llo");
    wire_read(&writer, false, &r);
    assert_int_equal(r.status, 204);
    wire_reply_done(&r);
    wire_read(&reader, false, &r);
    assert_true(r.complete);
    assert_int_equal(r.body.len, 64 << 20);
    wire_reply_done(&r);
    wire_close(&writer); /* it may have been idle for too long meanwhile */
    writer = wire_open(port);
    wire_print(&writer, "PUT /patient/put HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe");
    wait_for(&begun, 6);
    patience = false; /* it ends */
    wire_read_error(&writer, 408, "request_timeout");
    wire_close(&writer);
    wire_close(&reader);
}

/* The handler gives up in another thread while the client is silent in the middle of its body. */
static void test_reply_does_not_wait_for_the_client(void **state)
{
    (void)state;
    start(100, 30);
    for (int i = 0; i < 50; i++) {
        held = NULL;
        struct wire w = wire_open(port);
        wire_print(&w, "PUT /held HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhello");
        while (held == NULL)
            sched_yield();
        struct error err;
        error_set(&err, E_NO_SPACE, "no room");
        if (i % 2 == 0)
            wire_print(&w, "more"); /* at the same time */
        http_reply_error(held, &err);
        wire_read_error(&w, 507, "no_space");
        wire_print(&w, "%*s", i % 2 == 0 ? 91 : 95, "");
        get_hello(&w); /* so short a body is read to its end */
        wire_close(&w);
    }
    assert_int_equal(cut, 0);
}

/* --- too late --------------------------------------------------------------------------------- */

static void *free_server(void *arg)
{
    http_server_free(server);
    *(atomic_bool *)arg = true;
    return NULL;
}

/* The end with everything under way: what is parked gets its reply, uploads are cut, streams end,
 * and the last reply of a connection says so. */
static void test_end_with_everything_under_way(void **state)
{
    (void)state;
    start(100, 30);
    static const char *const requests[] = {
        "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n",
        "PUT /put HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe",
        "PUT /paused HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe",
        "GET /silent HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /big HTTP/1.1\r\nHost: x\r\n\r\n",
    };
    enum { COUNT = sizeof requests / sizeof requests[0] };
    struct wire w[COUNT];
    for (int i = 0; i < COUNT; i++) {
        w[i] = wire_open(port);
        wire_print(&w[i], "%s", requests[i]);
    }
    struct wire idle = wire_open(port);
    get_hello(&idle);
    wait_for(&begun, COUNT);
    atomic_bool freed = false;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, free_server, &freed), 0);
    for (;;) { /* until the end has begun */
        wire_print(&idle, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
        struct wire_reply r;
        wire_read(&idle, false, &r);
        assert_true(r.status == 200 || r.status == 503); /* carried out while the grace lasts */
        const char *connection = wire_header(&r, "Connection");
        bool last = connection != NULL && strcmp(connection, "close") == 0;
        wire_reply_done(&r);
        if (last)
            break;
    }
    assert_false(wire_is_open(&idle));
    wire_close(&idle);
    wait_for(&cut, 2);
    assert_false(freed); /* a handler still has a request */
    http_reply_empty(held, 204);
    struct wire_reply r;
    wire_read(&w[0], false, &r);
    assert_int_equal(r.status, 204);
    wire_reply_done(&r);
    pthread_join(thread, NULL);
    server = NULL;
    assert_int_equal(ended, COUNT);
    assert_int_equal(cut, 2);
    for (int i = 0; i < COUNT; i++)
        wire_close(&w[i]);
}

/* A request that is just being looked at when the server ends is waited for, or refused: its target
 * is long, so that the look takes a while. */
static void test_end_while_requests_begin(void **state)
{
    (void)state;
    _cleanup_free_ char *pairs = xmalloc(8001);
    for (size_t i = 0; i < 8000; i++)
        pairs[i] = "q&"[i % 2];
    pairs[8000] = '\0';
    for (unsigned i = 0; i < 200; i++) {
        start(100, 30);
        struct wire w = wire_open(port);
        get_hello(&w);
        wire_print(&w, "GET /hold?%s HTTP/1.1\r\nHost: x\r\n\r\n", pairs);
        for (uint64_t end = clock_us() + 5 * (i % 60); clock_us() < end;)
            sched_yield();
        atomic_bool freed = false;
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, free_server, &freed), 0);
        while (!freed) {
            struct http_request *req = atomic_exchange(&held, NULL);
            if (req != NULL)
                http_reply_empty(req, 204);
            sched_yield();
        }
        pthread_join(thread, NULL);
        server = NULL;
        assert_int_equal(begun, ended);
        wire_close(&w);
    }
}

static void test_bad_addresses(void **state)
{
    (void)state;
    start(10, 30);
    static const struct http_route *const tables[] = {routes, NULL};
    struct http_server_config config = {.node = "n",
                                        .net = NET_PUBLIC,
                                        .threads = 1,
                                        .connections_max = 1,
                                        .idle_timeout_s = 1,
                                        .routes = tables};
    struct http_server *other;
    struct error err = ERROR_INIT;
    config.address = "127.0.0.1";
    config.port = port;
    assert_int_equal(http_server_new(&config, &other, &err), E_IO);
    assert_non_null(strstr(err.message, "Address already in use"));
    config.address = "no-such-host";
    assert_int_equal(http_server_new(&config, &other, &err), E_INVALID);
}

#define TEST(name) cmocka_unit_test_teardown(name, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_connections_beyond_the_limit),       TEST(test_connections_of_one_address),
        TEST(test_two_thousand_connections),           TEST(test_timeouts),
        TEST(test_the_first_head_has_its_time),        TEST(test_patience),
        TEST(test_reply_does_not_wait_for_the_client), TEST(test_end_with_everything_under_way),
        TEST(test_end_while_requests_begin),           TEST(test_bad_addresses),
    };
    int failed = cmocka_run_group_tests_name("plain", tests, NULL, NULL);
    signal(SIGPIPE, SIG_IGN); /* OpenSSL's client writes where a connection is closed */
    tls = certificate_tls();
    wire_speaks_tls = true;
    failed += cmocka_run_group_tests_name("tls", tests, NULL, NULL);
    tls_free(tls);
    return failed;
}
