/* The server, asked over bare sockets: requests that are answered later, replies that come in
 * pieces, clients that leave, and many at once. */
#include "net/http/server.h"

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
#include "common/tsan.h"
#include "io/pool.h"
#include "net/testing/server_fixture.h"

static atomic_uint freed; /* streams */

/* --- handlers --------------------------------------------------------------------------------- */

static void hello(struct http_request *req)
{
    http_reply_data(req, 200, "text/plain", "hello", 5);
}

/* More than the socket takes at once. */
static void big(struct http_request *req)
{
    fixture_count_end(req);
    enum { BIG = 16 << 20 };
    char *data = xcalloc(1, BIG);
    http_reply_data(req, 200, "text/plain", data, BIG);
    free(data);
}

static void reply_from_pool(void *arg)
{
    struct http_request *req = arg;
    http_reply_data(req, 200, "text/plain", http_query(req, "q"), strlen(http_query(req, "q")));
}

static void parked(struct http_request *req)
{
    fixture_count_end(req);
    struct error err = ERROR_INIT;
    if (pool_submit(fx.pool, reply_from_pool, req, &err) != 0)
        http_reply_error(req, &err);
}

/* A stream that another thread feeds: each read empties it, each wake fills one piece. */
struct feed {
    struct http_request *req;
    uint64_t at;
    uint64_t size;
    uint64_t cut_at;
    pthread_mutex_t lock;
    bool full;
    bool gone;
    unsigned refs;
};

static void feed_unref(struct feed *f)
{
    pthread_mutex_lock(&f->lock);
    bool last = --f->refs == 0;
    pthread_mutex_unlock(&f->lock);
    if (last) {
        pthread_mutex_destroy(&f->lock);
        free(f);
    }
}

static void feed_fill(void *arg)
{
    struct feed *f = arg;
    pthread_mutex_lock(&f->lock);
    f->full = true;
    if (!f->gone)
        http_wake(f->req);
    pthread_mutex_unlock(&f->lock);
    feed_unref(f);
}

static ssize_t feed_read(void *ctx, char *out, size_t max)
{
    struct feed *f = ctx;
    if (f->at == f->cut_at)
        return HTTP_STREAM_CUT;
    if (f->at == f->size)
        return HTTP_STREAM_END;
    pthread_mutex_lock(&f->lock);
    bool full = f->full;
    f->full = false;
    if (!full)
        f->refs++;
    pthread_mutex_unlock(&f->lock);
    if (!full) {
        assert_int_equal(pool_submit(fx.pool, feed_fill, f, NULL), 0);
        return 0;
    }
    uint64_t end = f->at + 5000 < f->size ? f->at + 5000 : f->size;
    end = f->cut_at > f->at && f->cut_at < end ? f->cut_at : end;
    size_t n = end - f->at < max ? (size_t)(end - f->at) : max;
    for (size_t i = 0; i < n; i++)
        out[i] = pattern(f->at + i);
    f->at += n;
    return (ssize_t)n;
}

static void feed_free(void *ctx)
{
    struct feed *f = ctx;
    pthread_mutex_lock(&f->lock);
    f->gone = true;
    pthread_mutex_unlock(&f->lock);
    feed_unref(f);
    freed++;
}

static void stream(struct http_request *req)
{
    static const struct http_stream_ops ops = {.read = feed_read, .free = feed_free};
    struct feed *f = xcalloc(1, sizeof *f);
    f->req = req;
    f->refs = 1;
    f->size = query_u64(req, "size", 0);
    f->cut_at = query_u64(req, "cut", UINT64_MAX);
    pthread_mutex_init(&f->lock, NULL);
    fixture_count_end(req);
    http_reply_stream(req, 200, http_query(req, "length") != NULL ? (int64_t)f->size : -1, &ops, f);
}

/* Large replies that all begin when the last of them has been asked for, and whose turn it was. */
enum { TOGETHER = 4, TOGETHER_BYTES = 1024 * 1024 };

static struct {
    struct http_request *waiting[TOGETHER];
    size_t asked, reads;
    uintptr_t readers[TOGETHER]; /* of the first reads */
    uint64_t at[TOGETHER];
} together; /* all in one HTTP thread */

static ssize_t together_read(void *ctx, char *out, size_t max)
{
    uintptr_t reader = (uintptr_t)ctx;
    if (together.reads < TOGETHER)
        together.readers[together.reads] = reader;
    together.reads++;
    uint64_t left = TOGETHER_BYTES - together.at[reader];
    size_t n = left < max ? (size_t)left : max;
    memset(out, 'x', n);
    together.at[reader] += n;
    return n > 0 ? (ssize_t)n : HTTP_STREAM_END;
}

static void together_free(void *ctx)
{
    (void)ctx;
    freed++;
}

static void at_once(struct http_request *req)
{
    static const struct http_stream_ops ops = {.read = together_read, .free = together_free};
    together.waiting[together.asked++] = req;
    for (uintptr_t i = 0; together.asked == TOGETHER && i < TOGETHER; i++)
        http_reply_stream(together.waiting[i], 200, TOGETHER_BYTES, &ops, (void *)i);
}

static const struct http_route routes[] = {
    {.name = "together",
     .method = HTTP_GET,
     .pattern = "/together",
     .nets = NET_ALL,
     .right = RIGHT_NONE,
     .begin = at_once},
    {.name = "hello",
     .method = HTTP_GET,
     .pattern = "/hello",
     .nets = NET_ALL,
     .right = RIGHT_NONE,
     .begin = hello},
    {.name = "big",
     .method = HTTP_GET,
     .pattern = "/big",
     .nets = NET_ALL,
     .right = RIGHT_NONE,
     .begin = big},
    {.name = "parked",
     .method = HTTP_GET,
     .pattern = "/parked",
     .nets = NET_ALL,
     .right = RIGHT_NONE,
     .begin = parked,
     .query = HTTP_PARAMETERS({"q", "the answer"})},
    {.name = "stream",
     .method = HTTP_GET,
     .pattern = "/stream",
     .nets = NET_ALL,
     .right = RIGHT_NONE,
     .begin = stream,
     .query = HTTP_PARAMETERS({"size", "bytes"}, {"cut", "byte"}, {"length", "it is told"})},
    {.name = NULL},
};

static int setup(void **state)
{
    (void)state;
    freed = 0;
    fixture_start(fixture_config(NET_PUBLIC), routes);
    return 0;
}

/* --- tests ------------------------------------------------------------------------------------ */

static void test_parked(void **state)
{
    (void)state;
    struct wire w = wire_open(fx.port);
    for (int i = 0; i < 200; i++)
        get(&w, "/parked?q=later", 200, "later");
    wire_close(&w);
}

static void test_streams(void **state)
{
    (void)state;
    struct wire w = wire_open(fx.port);
    static const size_t sizes[] = {0, 1, 4999, 5000, 300000};
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof sizes[0]; i++) {
        char target[64];
        snprintf(target, sizeof target, "/stream?size=%zu%s", sizes[i / 2],
                 i % 2 == 0 ? "&length" : "");
        struct wire_reply r;
        wire_get(&w, "GET", target, &r);
        assert_int_equal(r.status, 200);
        assert_true(r.complete);
        assert_pattern(&r.body, 0, sizes[i / 2]);
        wire_reply_done(&r);
    }
    wire_close(&w);
}

static void test_cut_streams(void **state)
{
    (void)state;
    static const char *const targets[] = {
        "/stream?size=50000&cut=12345", "/stream?size=50000&cut=12345&length",
        "/stream?size=50000&cut=0&length", "/stream?size=50000&cut=0"};
    for (size_t i = 0; i < 4; i++) {
        struct wire w = wire_open(fx.port);
        struct wire_reply r;
        wire_get(&w, "GET", targets[i], &r);
        assert_int_equal(r.status, 200);
        assert_false(r.complete);
        assert_false(wire_is_open(&w));
        wire_reply_done(&r);
        wire_close(&w);
    }
}

/* Clients that leave at every possible moment: what was begun ends, nothing leaks. */
static void wait_for(atomic_uint *counter, unsigned value)
{
    for (uint64_t end = clock_ms() + 20000; *counter != value && clock_ms() < end;)
        sched_yield();
    assert_int_equal(*counter, value);
}

static void test_clients_that_leave(void **state)
{
    (void)state;
    enum { CLIENTS = 200 / TSAN_STRIDE };
    static const char *const targets[] = {"/parked?q=x", "/stream?size=5000000",
                                          "/stream?size=5000000&length", "/big"};
    for (int i = 0; i < CLIENTS; i++) {
        struct wire w = wire_open(fx.port);
        wire_print(&w, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", targets[i % 4]);
        if (i % 3 == 0) {
            char byte;
            assert_int_equal(wire_recv_plain(&w, &byte, 1), 1);
        }
        wire_close(&w);
    }
    wait_for(&fx.ended, CLIENTS);
    assert_int_equal(freed, CLIENTS / 2);
}

struct asker {
    pthread_t thread;
    int number;
};

static void *ask(void *arg)
{
    const struct asker *a = arg;
    struct wire w = wire_open(fx.port);
    char expected[16];
    char target[32];
    snprintf(expected, sizeof expected, "%d", a->number);
    snprintf(target, sizeof target, "/parked?q=%d", a->number);
    for (int i = 0; i < 10; i++) {
        get(&w, target, 200, expected);
        get(&w, "/stream?size=20000&length", 200, NULL);
        get(&w, "/hello", 200, "hello");
    }
    wire_close(&w);
    return NULL;
}

static void test_many_connections(void **state)
{
    (void)state;
    enum { ASKERS = 32, IDLE = 468 };
    static struct wire idle[IDLE];
    for (int i = 0; i < IDLE; i++)
        idle[i] = wire_open(fx.port);
    static struct asker askers[ASKERS];
    for (int i = 0; i < ASKERS; i++) {
        askers[i].number = i;
        assert_int_equal(pthread_create(&askers[i].thread, NULL, ask, &askers[i]), 0);
    }
    for (int i = 0; i < ASKERS; i++)
        pthread_join(askers[i].thread, NULL);
    for (int i = 0; i < IDLE; i++) {
        get(&idle[i], "/hello", 200, "hello");
        wire_close(&idle[i]);
    }
}

static int setup_one_thread(void **state)
{
    (void)state;
    struct http_server_config config = fixture_config(NET_PUBLIC);
    config.threads = 1;
    freed = 0;
    fixture_start(config, routes);
    return 0;
}

static void test_all_begin_before_any_goes_on(void **state)
{
    (void)state;
    struct wire clients[TOGETHER];
    unsigned seen = 0;
    memset(&together, 0, sizeof together);
    for (size_t i = 0; i < TOGETHER; i++) {
        clients[i] = wire_open(fx.port);
        wire_print(&clients[i], "GET /together HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    for (size_t i = 0; i < TOGETHER; i++) {
        struct wire_reply r;
        wire_read(&clients[i], false, &r);
        assert_true(r.complete);
        assert_int_equal(r.body.len, TOGETHER_BYTES);
        wire_reply_done(&r);
        wire_close(&clients[i]);
    }
    wait_for(&freed, TOGETHER);
    for (size_t i = 0; i < TOGETHER; i++)
        seen |= 1u << together.readers[i];
    assert_int_equal(seen, (1u << TOGETHER) - 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_parked),           TEST(test_streams),
        TEST(test_cut_streams),      TEST(test_clients_that_leave),
        TEST(test_many_connections),
    };
    const struct CMUnitTest of_ours[] = {
        cmocka_unit_test_setup_teardown(test_all_begin_before_any_goes_on, setup_one_thread,
                                        fixture_stop),
    };
    fx.layer = HTTP_LAYER_EPOLL;
    int failed = cmocka_run_group_tests_name("epoll", tests, NULL, NULL) +
                 cmocka_run_group_tests_name("epoll, turns", of_ours, NULL, NULL);
    fx.layer = HTTP_LAYER_MICROHTTPD;
    failed += cmocka_run_group_tests_name("microhttpd", tests, NULL, NULL);
    fixture_begin_tls();
    failed += cmocka_run_group_tests_name("tls", tests, NULL, NULL);
    fixture_end_tls();
    return failed;
}
