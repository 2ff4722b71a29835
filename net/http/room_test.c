/* A full listener: silent connections give way to newcomers, busy ones do not. */
#include "net/http/room.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/clock.h"
#include "net/http/server_state.h"
#include "net/testing/hello_fixture.h"

enum { MAX = 40, TRIES_MS = 30000 };

static struct http_request *_Atomic held[MAX];
static atomic_uint holding;

static void hold(struct http_request *req)
{
    held[holding++] = req;
}

static const struct http_route routes[] = {
    {.name = "hello",
     .method = HTTP_GET,
     .pattern = "/hello",
     .nets = 7,
     .right = RIGHT_NONE,
     .begin = hello},
    {.name = "hold",
     .method = HTTP_GET,
     .pattern = "/hold",
     .nets = 7,
     .right = RIGHT_NONE,
     .begin = hold},
    {.name = NULL},
};

static void start(enum http_net net)
{
    static const struct http_route *const tables[] = {routes, NULL};
    const struct http_server_config config = {
        .node = "n1",
        .address = "127.0.0.1",
        .net = net,
        .threads = 3,
        .connections_max = MAX,
        .connection_memory = 32 * 1024,
        .idle_timeout_s = 3600,
        .routes = tables,
    };
    struct error err = ERROR_INIT;
    holding = 0;
    if (http_server_new(&config, &server, &err) != 0)
        fail_msg("%s", err.message);
    port = http_server_port(server);
}

static struct wire from(unsigned host)
{
    return wire_open_from(port, INADDR_LOOPBACK + host);
}

static int ask(struct wire *w)
{
    static const char text[] = "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n";
    struct wire_reply r;
    wire_try_send(w, text, sizeof text - 1);
    wire_read(w, false, &r);
    int status = r.status;
    wire_reply_done(&r);
    return status;
}

/* Those that hold have been silent for ROOM_SILENT_MS some time. */
static struct wire get_in(unsigned host)
{
    for (uint64_t end = clock_ms() + TRIES_MS;;) {
        struct wire w = from(host);
        if (ask(&w) == 200)
            return w;
        wire_close(&w);
        assert_true(clock_ms() < end);
    }
}

static void send_hold(struct wire *w)
{
    wire_print(w, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
}

static void wait_for_held(unsigned count)
{
    for (uint64_t end = clock_ms() + TRIES_MS; holding < count;)
        assert_true(clock_ms() < end);
}

static void let_go(struct wire *w, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct wire_reply r;
        http_reply_empty(held[i], 204);
        wire_read(&w[i], false, &r);
        assert_int_equal(r.status, 204);
        wire_reply_done(&r);
        wire_close(&w[i]);
    }
}

static void close_all(struct wire *w, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        wire_close(&w[i]);
}

static void wait_until_silent(void)
{
    for (uint64_t end = clock_ms() + ROOM_SILENT_MS + 100; clock_ms() < end;)
        ;
}

static void test_silent_connections_give_way(void **state)
{
    (void)state;
    enum { GUESTS = 10 };
    struct wire busy = wire_open_from(port, INADDR_LOOPBACK), silent[MAX], guests[GUESTS];
    send_hold(&busy);
    wait_for_held(1);
    for (unsigned i = 1; i < MAX; i++) /* some have asked once */
        if (silent[i] = from(1 + i % 3), i % 2 == 0)
            assert_int_equal(ask(&silent[i]), 200);
    for (unsigned i = 0; i < GUESTS; i++)
        guests[i] = get_in(10 + i);
    for (unsigned i = 0; i < GUESTS; i++) /* each has one, the others have more */
        assert_int_equal(ask(&guests[i]), 200);
    let_go(&busy, 1);
    close_all(guests, GUESTS);
    close_all(silent + 1, MAX - 1);
}

static void test_the_longest_silent_of_the_largest(void **state)
{
    (void)state;
    enum { SMALL = 10 };
    struct wire w[MAX];
    for (unsigned i = 0; i < MAX; i++) { /* the first are of the smaller address */
        w[i] = from(i < SMALL ? 1 : 2);
        assert_int_equal(ask(&w[i]), 200);
    }
    uint64_t end = clock_ms() + 20; /* so that its time is another one */
    while (clock_ms() < end)
        ;
    for (unsigned i = SMALL; i < MAX; i++) {
        if (i != SMALL + 7)
            assert_int_equal(ask(&w[i]), 200);
    }
    wait_until_silent(); /* all: only then the address decides */
    struct wire guest = get_in(9);
    assert_false(wire_is_open(&w[SMALL + 7]));
    for (unsigned i = 0; i < MAX; i++) {
        if (i != SMALL + 7)
            assert_int_equal(ask(&w[i]), 200);
    }
    wire_close(&guest);
    close_all(w, MAX);
}

/* Does not wait: the server has closed it. */
static bool has_ended(const struct wire *w)
{
    char one;
    return recv(w->fd, &one, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* The address with the most connections has a request on each. */
static void test_the_largest_that_has_silent_ones(void **state)
{
    (void)state;
    enum { BUSY = 21, SECOND = 12, GUESTS = 3 };
    struct wire w[MAX], guests[GUESTS];
    for (unsigned i = 0; i < BUSY; i++) {
        w[i] = from(1);
        send_hold(&w[i]);
        wait_for_held(i + 1); /* in this order */
    }
    for (unsigned i = BUSY; i < MAX; i++) { /* the first are of the smaller address */
        w[i] = from(i < MAX - SECOND ? 3 : 2);
        assert_int_equal(ask(&w[i]), 200);
    }
    wait_until_silent();
    for (unsigned i = 0; i < GUESTS; i++)
        guests[i] = get_in(10 + i);
    unsigned closed = 0;
    for (unsigned i = BUSY; i < MAX; i++) {
        bool over = has_ended(&w[i]);
        assert_true(!over || i >= MAX - SECOND);
        closed += over;
    }
    assert_int_equal(closed, GUESTS);
    close_all(guests, GUESTS);
    let_go(w, BUSY);
    close_all(w + BUSY, MAX - BUSY);
}

static void assert_refused(unsigned host)
{
    struct wire w = from(host);
    wire_print(&w, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    wire_read_error(&w, 503, "overloaded");
    wire_close(&w);
}

static void test_busy_connections_stay(void **state)
{
    (void)state;
    struct wire w[MAX];
    for (unsigned i = 0; i < MAX; i++) {
        w[i] = from(1 + i % 2);
        send_hold(&w[i]);
        wait_for_held(i + 1); /* in this order */
    }
    wait_until_silent();
    assert_refused(3);
    assert_refused(4);
    let_go(w, MAX);
}

static void test_listeners_of_nodes_close_none(void **state)
{
    stop(state);
    start(NET_CONTROL);
    struct wire w[MAX];
    for (unsigned i = 0; i < MAX; i++) {
        w[i] = from(1 + i % 2);
        assert_int_equal(ask(&w[i]), 200);
    }
    wait_until_silent();
    assert_refused(3);
    for (unsigned i = 0; i < MAX; i++)
        assert_int_equal(ask(&w[i]), 200);
    close_all(w, MAX);
}

/* Newcomers that look for room while the server ends are closed with the rest. */
static void test_the_end_among_newcomers(void **state)
{
    (void)state;
    struct wire w[MAX], newcomers[ROOM_NEWCOMERS_MAX];
    for (unsigned i = 0; i < MAX; i++) {
        w[i] = from(1 + i % 2);
        assert_int_equal(ask(&w[i]), 200);
    }
    wait_until_silent();
    for (unsigned i = 0; i < ROOM_NEWCOMERS_MAX; i++)
        newcomers[i] = from(3 + i);
    stop(NULL);
    for (unsigned i = 0; i < ROOM_NEWCOMERS_MAX; i++) {
        while (wire_is_open(&newcomers[i]))
            newcomers[i].in.len = 0;
        wire_close(&newcomers[i]);
    }
    close_all(w, MAX);
}

static int setup(void **state)
{
    (void)state;
    start(NET_PUBLIC);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_silent_connections_give_way),      TEST(test_the_longest_silent_of_the_largest),
        TEST(test_the_largest_that_has_silent_ones), TEST(test_busy_connections_stay),
        TEST(test_listeners_of_nodes_close_none),    TEST(test_the_end_among_newcomers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
