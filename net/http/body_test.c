/* The server, sent bodies over bare sockets: whole, slow, cut, refused, unwanted. */
#include "net/http/server.h"

#include <microhttpd.h>
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
#include "io/pool.h"
#include "net/http/pipe.h"
#include "net/http/server_state.h"
#include "net/testing/server_fixture.h"

enum { COLLECT_MEMORY = 1700000 }; /* 17 bodies of the largest size */
enum { MHD_1 = MHD_VERSION >= 0x01000000 };

static atomic_uint begun;
static atomic_uint cut;

static void reply_number(struct http_request *req, uint64_t n)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)n);
    http_reply_data(req, 200, "text/plain", text, strlen(text));
}

/* --- handlers --------------------------------------------------------------------------------- */

static void collected(struct http_request *req, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        assert_int_equal(data[i], pattern(i));
    assert_int_equal(data[len], '\0');
    reply_number(req, len);
}

static void collect(struct http_request *req)
{
    begun++;
    fixture_count_end(req);
    http_collect_body(req, 100000, collected);
}

/* Takes pieces and checks them; every `pause_at` bytes it lets the upload wait until another thread
 * says go on; replies in the middle when it is told to. */
struct taker {
    struct http_request *req;
    uint64_t taken;
    uint64_t paused_at;
    uint64_t fail_at; /* bytes after which an error is replied; UINT64_MAX never */
    bool fail_elsewhere;
    bool replied;
};

static void resume_from_pool(void *arg)
{
    http_resume_body(arg);
}

static void fail_from_pool(void *arg)
{
    struct error err;
    error_set(&err, E_NO_SPACE, "no room for more");
    http_reply_error(arg, &err);
}

static size_t taker_data(struct http_request *req, void *ctx, const char *data, size_t len)
{
    struct taker *t = ctx;
    if (t->replied)
        return len;
    if (t->taken >= t->fail_at) {
        t->replied = true;
        if (!t->fail_elsewhere)
            fail_from_pool(req);
        else
            assert_int_equal(pool_submit(fx.pool, fail_from_pool, req, NULL), 0);
        return t->fail_elsewhere ? 0 : len;
    }
    if (t->taken - t->paused_at >= 100000) {
        t->paused_at = t->taken;
        assert_int_equal(pool_submit(fx.pool, resume_from_pool, req, NULL), 0);
        return 0;
    }
    size_t n = len < 3000 ? len : len - 1; /* sometimes not all */
    for (size_t i = 0; i < n; i++) {
        if (data[i] != pattern(t->taken + i))
            fail_msg("byte %llu differs", (unsigned long long)(t->taken + i));
    }
    t->taken += n;
    if (n < len)
        http_resume_body(req); /* before this returns */
    return n;
}

static void reply_taken(void *arg)
{
    struct taker *t = arg;
    reply_number(t->req, t->taken);
}

static void taker_end(struct http_request *req, void *ctx)
{
    (void)req;
    assert_int_equal(pool_submit(fx.pool, reply_taken, ctx, NULL), 0);
}

static void taker_cut(struct http_request *req, void *ctx)
{
    (void)req;
    (void)ctx;
    cut++;
}

static const struct http_body_ops taker_ops = {
    .data = taker_data, .end = taker_end, .cut = taker_cut};

static void take(struct http_request *req)
{
    begun++;
    fixture_count_end(req);
    struct taker *t = arena_alloc(http_arena(req), sizeof *t);
    t->req = req;
    t->fail_at = UINT64_MAX;
    const char *fail_at = http_query(req, "fail_at");
    if (fail_at != NULL)
        t->fail_at = strtoull(fail_at, NULL, 10);
    t->fail_elsewhere = http_query(req, "elsewhere") != NULL;
    http_take_body(req, &taker_ops, t);
}

static void refuse(struct http_request *req)
{
    begun++;
    struct error err;
    error_set(&err, E_BUCKET_NOT_FOUND, "bucket 'x' does not exist");
    http_reply_error(req, &err);
}

static void refuse_later(struct http_request *req)
{
    assert_int_equal(pool_submit(fx.pool, fail_from_pool, req, NULL), 0);
}

/* The body goes into a pipe, a worker reads the pipe, and the reply is a pipe of the same bytes. */
struct echo {
    struct http_request *req;
    struct bpipe *in;
    struct bpipe *out;
};

static void echo_work(void *arg)
{
    struct echo *e = arg;
    char piece[7000];
    struct error err = ERROR_INIT;
    ssize_t n;
    while ((n = bpipe_read(e->in, piece, sizeof piece, &err)) > 0) {
        if (bpipe_write(e->out, piece, (size_t)n, &err) != 0)
            break;
    }
    bpipe_finish(e->out, n < 0 ? &err : NULL);
    bpipe_unref(e->out);
    bpipe_unref(e->in);
    free(e);
}

static void echo_ended(struct http_request *req, void *ctx)
{
    http_reply_pipe(req, 200, http_content_length(req), ctx);
}

static void echo_unref(void *arg)
{
    bpipe_unref(arg);
}

static void echo(struct http_request *req)
{
    begun++;
    fixture_count_end(req);
    struct echo *e = xcalloc(1, sizeof *e);
    e->in = bpipe_new(10000);
    e->out = bpipe_new(2 << 20); /* takes the whole, since the reply begins after the body */
    struct bpipe *in = bpipe_ref(e->in);
    struct bpipe *out = bpipe_ref(e->out);
    http_on_end(req, echo_unref, out);
    assert_int_equal(pool_submit(fx.pool, echo_work, e, NULL), 0);
    http_body_to_pipe(req, in, echo_ended, out);
    bpipe_unref(in);
}

#define PUT(route, fn)                                                                           \
    {                                                                                            \
        .name = #fn, .method = HTTP_PUT, .pattern = route, .nets = NET_ALL, .right = RIGHT_NONE, \
        .begin = fn, .query = HTTP_PARAMETERS({"fail_at", "byte"}, {"elsewhere", "in a worker"}) \
    }
static const struct http_route routes[] = {
    PUT("/collect", collect),           PUT("/take", take), PUT("/refuse", refuse),
    PUT("/refuse_later", refuse_later), PUT("/echo", echo), {.name = NULL},
};

static int setup(void **state)
{
    (void)state;
    struct http_server_config config = fixture_config(NET_DATA);
    config.collect_memory = COLLECT_MEMORY;
    begun = cut = 0;
    fixture_start(config, routes);
    return 0;
}

/* --- sending ---------------------------------------------------------------------------------- */

/* `len` bytes of the pattern; false when the other side has closed. */
static bool send_pattern(struct wire *w, uint64_t len, bool chunked)
{
    static _Thread_local char piece[50000];
    /* libmicrohttpd 1.0 takes the LF behind an extension for the first byte of the chunk. */
    const bool bare = fx.layer == HTTP_LAYER_MICROHTTPD && MHD_1;
    for (uint64_t at = 0; at < len;) {
        size_t n = len - at < sizeof piece ? (size_t)(len - at) : sizeof piece;
        for (size_t i = 0; i < n; i++)
            piece[i] = pattern(at + i);
        char head[32];
        snprintf(head, sizeof head, "%zX%s\r\n", n, bare ? "" : ";x=y");
        if (chunked && !wire_try_send(w, head, strlen(head)))
            return false;
        if (!wire_try_send(w, piece, n) || (chunked && !wire_try_send(w, "\r\n", 2)))
            return false;
        at += n;
    }
    return !chunked || wire_try_send(w, "0\r\nX-Trailer: y\r\n\r\n", 19);
}

static void put_head(struct wire *w, const char *target, uint64_t len, bool chunked,
                     const char *more)
{
    if (chunked)
        wire_print(w, "PUT %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n%s\r\n", target,
                   more);
    else
        wire_print(w, "PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: %llu\r\n%s\r\n", target,
                   (unsigned long long)len, more);
}

static void put(struct wire *w, const char *target, uint64_t len, bool chunked, int status,
                struct wire_reply *r)
{
    put_head(w, target, len, chunked, "");
    assert_true(send_pattern(w, len, chunked));
    wire_read(w, false, r);
    assert_int_equal(r->status, status);
}

static void wait_for(atomic_uint *counter, unsigned value)
{
    for (uint64_t end = clock_ms() + 20000; *counter != value && clock_ms() < end;)
        sched_yield();
    assert_int_equal(*counter, value);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void test_bodies_of_all_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        uint64_t len;
    } rows[] = {
        {"/collect", 0}, {"/collect", 1}, {"/collect", 50000}, {"/collect", 100000},
        {"/take", 0},    {"/take", 1},    {"/take", 99999},    {"/take", 3000000},
    };
    struct wire w = wire_open(fx.port);
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        struct wire_reply r;
        put(&w, rows[i / 2].target, rows[i / 2].len, i % 2 == 1, 200, &r);
        char expected[32];
        snprintf(expected, sizeof expected, "%llu", (unsigned long long)rows[i / 2].len);
        assert_string_equal(r.body.data, expected);
        assert_null(wire_header(&r, "Connection"));
        wire_reply_done(&r);
    }
    wire_close(&w);
}

static void test_byte_by_byte(void **state)
{
    (void)state;
    struct wire w = wire_open(fx.port);
    static const char request[] = "PUT /collect HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked"
                                  "\r\n\r\n3\r\n";
    for (size_t i = 0; i < sizeof request - 1; i++)
        wire_send(&w, request + i, 1);
    for (uint64_t i = 0; i < 3; i++) {
        char c = pattern(i);
        wire_send(&w, &c, 1);
    }
    wire_print(&w, "\r\n0\r\n\r\n");
    struct wire_reply r;
    wire_read(&w, false, &r);
    assert_string_equal(r.body.data, "3");
    wire_reply_done(&r);
    wire_close(&w);
}

static void test_too_large(void **state)
{
    (void)state;
    struct wire_reply r;
    struct wire w = wire_open(fx.port); /* a little too large: the connection goes on */
    put(&w, "/collect", 100001, false, 413, &r);
    wire_assert_code(&r, "too_large");
    wire_reply_done(&r);
    wire_close(&w);

    w = wire_open(fx.port); /* announced: refused before a byte of it */
    put_head(&w, "/collect", 1ull << 40, false, "");
    wire_read(&w, false, &r);
    assert_int_equal(r.status, 413);
    wire_assert_code(&r, "too_large");
    assert_string_equal(wire_header(&r, "Connection"), "close");
    wire_reply_done(&r);
    wire_close(&w);

    w = wire_open(fx.port); /* not announced: refused when it is */
    put_head(&w, "/collect", 0, true, "");
    send_pattern(&w, 10000000, true);
    wire_read(&w, false, &r);
    assert_int_equal(r.status, 413);
    wire_assert_code(&r, "too_large");
    wire_reply_done(&r);
    wire_close(&w);
}

/* Many clients send a body but for its last byte, and together more than may be kept of them. */
static void test_collected_bodies_together(void **state)
{
    (void)state;
    enum { MANY = COLLECT_MEMORY / 100000, LEN = 100000 };
    struct wire held[MANY];
    struct wire_reply r;
    for (int i = 0; i < MANY; i++) {
        held[i] = wire_open(fx.port);
        put_head(&held[i], "/collect", LEN, false, "");
        assert_true(send_pattern(&held[i], LEN - 1, false));
    }
    for (uint64_t end = clock_ms() + 20000; fx.server->collected != MANY * (LEN - 1);) {
        assert_true(clock_ms() < end);
        sched_yield();
    }
    struct wire w = wire_open(fx.port);
    put_head(&w, "/collect", LEN, false, "");
    send_pattern(&w, LEN, false); /* refused before all of it is sent, or after */
    wire_read(&w, false, &r);
    assert_int_equal(r.status, 503);
    wire_assert_code(&r, "overloaded");
    wire_reply_done(&r);
    wire_close(&w);
    for (int i = 0; i < MANY; i++) {
        char last = pattern(LEN - 1);
        wire_send(&held[i], &last, 1);
        wire_read(&held[i], false, &r);
        assert_int_equal(r.status, 200);
        wire_reply_done(&r);
        wire_close(&held[i]);
    }
    w = wire_open(fx.port); /* and there is room again */
    put(&w, "/collect", LEN, false, 200, &r);
    wire_reply_done(&r);
    wire_close(&w);
}

static void test_short_unwanted_body_keeps_the_connection(void **state)
{
    (void)state;
    struct wire w = wire_open(fx.port);
    for (int i = 0; i < 20; i++) {
        struct wire_reply r;
        put(&w, i % 2 == 0 ? "/refuse" : "/nowhere", 1000 + (uint64_t)i * 3000, false, 404, &r);
        wire_assert_code(&r, i % 2 == 0 ? "bucket_not_found" : "no_such_route");
        assert_null(wire_header(&r, "Connection"));
        wire_reply_done(&r);
        put(&w, "/collect", 10, false, 200, &r);
        wire_reply_done(&r);
    }
    wire_close(&w);
}

/* The client sends on and on, and reads only then: the reply must still be there. */
static void test_reply_survives_a_long_unwanted_body(void **state)
{
    (void)state;
    static const char *const targets[] = {"/refuse", "/refuse_later", "/take?fail_at=200000",
                                          "/take?fail_at=200000&elsewhere"};
    for (int i = 0; i < 40; i++) {
        struct wire w = wire_open(fx.port);
        put_head(&w, targets[i % 4], 64 << 20, i / 4 % 2 == 1, "");
        send_pattern(&w, 1 << 20, i / 4 % 2 == 1); /* the server may have closed: no matter */
        send_pattern(&w, 1 << 20, i / 4 % 2 == 1);
        struct wire_reply r;
        wire_read(&w, false, &r);
        assert_int_equal(r.status, i % 4 == 0 ? 404 : 507);
        assert_true(r.complete);
        wire_assert_code(&r, i % 4 == 0 ? "bucket_not_found" : "no_space");
        assert_string_equal(wire_header(&r, "Connection"), "close");
        wire_reply_done(&r);
        assert_false(wire_is_open(&w));
        wire_close(&w);
    }
}

/* An error near the end of a body: what is left is short, the connection goes on. */
static void test_reply_near_the_end_keeps_the_connection(void **state)
{
    (void)state;
    struct wire w = wire_open(fx.port);
    for (int i = 0; i < 10; i++) {
        struct wire_reply r;
        put(&w, i % 2 == 0 ? "/take?fail_at=200000" : "/take?fail_at=200000&elsewhere", 230000,
            false, 507, &r);
        wire_assert_code(&r, "no_space");
        assert_null(wire_header(&r, "Connection"));
        wire_reply_done(&r);
    }
    wire_close(&w);
}

static void test_expect(void **state)
{
    (void)state;
    struct wire w = wire_open(fx.port);
    struct wire_reply r;
    put_head(&w, "/take", 500000, false, "Expect: 100-continue\r\n");
    wire_read(&w, false, &r);
    assert_int_equal(r.status, 100);
    wire_reply_done(&r);
    assert_true(send_pattern(&w, 500000, false));
    wire_read(&w, false, &r);
    assert_int_equal(r.status, 200);
    assert_string_equal(r.body.data, "500000");
    wire_reply_done(&r);
    static const char *const targets[] = {"/refuse", "/refuse_later", "/nowhere"};
    for (int i = 0; i < 3; i++) {
        struct wire refused = wire_open(fx.port);
        put_head(&refused, targets[i], 1 << 20, false, "Expect: 100-Continue\r\n");
        wire_read(&refused, false, &r); /* without a byte of the body, and without a 100 */
        assert_int_equal(r.status, i == 1 ? 507 : 404);
        wire_reply_done(&r);
        wire_close(&refused);
    }
    wire_close(&w);
}

/* A short body is asked for also where the reply is there already: the connection goes on. */
static void test_expect_short(void **state)
{
    (void)state;
    if (fx.layer == HTTP_LAYER_MICROHTTPD)
        return; /* it closes the connection */
    struct wire w = wire_open(fx.port);
    struct wire_reply r;
    static const char *const targets[] = {"/refuse", "/refuse_later", "/nowhere"};
    for (int i = 0; i < 6; i++) {
        put_head(&w, targets[i % 3], 16 << 10, false, "Expect: 100-continue\r\n");
        wire_read(&w, false, &r);
        assert_int_equal(r.status, 100);
        wire_reply_done(&r);
        assert_true(send_pattern(&w, 16 << 10, false));
        wire_read(&w, false, &r);
        assert_int_equal(r.status, i % 3 == 1 ? 507 : 404);
        assert_null(wire_header(&r, "Connection"));
        wire_reply_done(&r);
    }
    wire_close(&w);
}

static void test_cut_bodies(void **state)
{
    (void)state;
    static const char *const targets[] = {"/collect", "/take", "/echo"};
    enum { CLIENTS = 120 };
    for (int i = 0; i < CLIENTS; i++) {
        struct wire w = wire_open(fx.port);
        put_head(&w, targets[i % 3], 90000, i % 2 == 0, "");
        if (i % 2 == 1)
            send_pattern(&w, 1 + (uint64_t)i * 600, false);
        else
            wire_print(&w, "ffff\r\n%c%c", pattern(0), pattern(1));
        wait_for(&begun, (unsigned)i + 1);
        wire_close(&w);
    }
    wait_for(&fx.ended, CLIENTS);
    assert_int_equal(cut, CLIENTS / 3);
}

static void test_echo(void **state)
{
    (void)state;
    struct wire w = wire_open(fx.port);
    for (int i = 0; i < 20; i++) {
        struct wire_reply r;
        put(&w, "/echo", (uint64_t)i * 50000, i % 2 == 1, 200, &r);
        assert_true(r.complete);
        assert_int_equal(r.body.len, i * 50000);
        for (size_t at = 0; at < r.body.len; at++)
            assert_int_equal(r.body.data[at], pattern(at));
        wire_reply_done(&r);
    }
    wire_close(&w);
}

static void test_smuggling_is_refused(void **state)
{
    (void)state;
    const struct {
        const char *headers;
        int status;
    } rows[] = {
        {"Content-Length: 5\r\nContent-Length: 6\r\n", 400},
        {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", 400},
        {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400},
        {"Transfer-Encoding: gzip, chunked\r\n",
         fx.layer == HTTP_LAYER_MICROHTTPD && MHD_1 ? 400 : 501}, /* its own word */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wire w = wire_open(fx.port);
        wire_print(&w, "PUT /collect HTTP/1.1\r\nHost: x\r\n%s\r\nhello", rows[i].headers);
        struct wire_reply r;
        wire_read(&w, false, &r);
        assert_int_equal(r.status, rows[i].status);
        assert_false(wire_is_open(&w));
        wire_reply_done(&r);
        wire_close(&w);
    }
    assert_int_equal(begun, 0);
}

static void *put_many(void *arg)
{
    (void)arg;
    struct wire w = wire_open(fx.port);
    for (int i = 0; i < 30; i++) {
        struct wire_reply r;
        put(&w, i % 3 == 0 ? "/echo" : "/take", 150000, i % 2 == 0, 200, &r);
        wire_reply_done(&r);
    }
    wire_close(&w);
    return NULL;
}

static void test_many_uploads(void **state)
{
    (void)state;
    pthread_t threads[16];
    for (int i = 0; i < 16; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, put_many, NULL), 0);
    for (int i = 0; i < 16; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(begun, 16 * 30);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_bodies_of_all_sizes),
        TEST(test_byte_by_byte),
        TEST(test_too_large),
        TEST(test_collected_bodies_together),
        TEST(test_short_unwanted_body_keeps_the_connection),
        TEST(test_reply_survives_a_long_unwanted_body),
        TEST(test_reply_near_the_end_keeps_the_connection),
        TEST(test_expect),
        TEST(test_expect_short),
        TEST(test_cut_bodies),
        TEST(test_echo),
        TEST(test_smuggling_is_refused),
        TEST(test_many_uploads),
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
