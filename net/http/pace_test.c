/* A server whose guard says when bytes may go: connections rest meanwhile, body and reply alike. */
#include "net/http/server.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/mem.h"
#include "net/testing/wire.h"

enum { BODY_BYTES = 1000000, STEP_MAX = 256 * 1024 };

static _Atomic enum http_pace answer;
static atomic_uint asked, ended;
static atomic_size_t received, read_bytes, longest; /* the longest: between two questions */
static size_t last;                                 /* the HTTP thread's */

static enum http_pace pace(void *ctx, struct http_request *req)
{
    (void)ctx;
    size_t now = http_bytes(req), step = now > last ? now - last : 0;
    last = now;
    if (step > longest)
        longest = step;
    asked++;
    return answer;
}

static int let_in(void *ctx, struct http_request *req, struct error *err)
{
    (void)ctx;
    (void)req;
    (void)err;
    last = 0;
    return 0;
}

/* --- a route that takes, and one that gives --------------------------------------------------- */

static void on_end(void *arg)
{
    (void)arg;
    ended++;
}

static size_t take(struct http_request *req, void *ctx, const char *data, size_t len)
{
    (void)req;
    (void)ctx;
    (void)data;
    received += len;
    return len;
}

static void taken(struct http_request *req, void *ctx)
{
    (void)ctx;
    http_reply_empty(req, 204);
}

static void cut(struct http_request *req, void *ctx)
{
    (void)req;
    (void)ctx;
}

static void put_begin(struct http_request *req)
{
    static const struct http_body_ops ops = {.data = take, .end = taken, .cut = cut};
    http_on_end(req, on_end, NULL);
    http_take_body(req, &ops, NULL);
}

static ssize_t give(void *ctx, char *out, size_t max)
{
    (void)ctx;
    memset(out, 'x', max);
    read_bytes += max;
    return (ssize_t)max;
}

static void given(void *ctx)
{
    (void)ctx;
}

static void get_begin(struct http_request *req)
{
    static const struct http_stream_ops ops = {.read = give, .free = given};
    http_on_end(req, on_end, NULL);
    http_reply_stream(req, 200, BODY_BYTES, &ops, NULL);
}

static const struct http_route routes[] = {
    {.name = "put",
     .method = HTTP_PUT,
     .pattern = "/things",
     .nets = NET_PUBLIC,
     .right = RIGHT_WRITE,
     .any_type = true,
     .begin = put_begin},
    {.name = "get",
     .method = HTTP_GET,
     .pattern = "/things",
     .nets = NET_PUBLIC,
     .right = RIGHT_READ,
     .begin = get_begin},
    {.name = NULL},
};

/* --- the server ------------------------------------------------------------------------------- */

static struct http_server *server;
static struct wire wire;

static int setup(void **state)
{
    (void)state;
    static const struct http_route *const tables[] = {routes, NULL};
    static const struct http_guard guard = {.open = let_in, .pace = pace};
    const struct http_server_config config = {.node = "n1",
                                              .address = "127.0.0.1",
                                              .net = NET_PUBLIC,
                                              .threads = 1,
                                              .connections_max = 16,
                                              .connection_memory = 32768,
                                              .idle_timeout_s = 60,
                                              .routes = tables,
                                              .guard = &guard};
    asked = ended = 0;
    received = read_bytes = longest = 0;
    answer = HTTP_PACE_WAIT;
    assert_int_equal(http_server_new(&config, &server, NULL), 0);
    wire = wire_open(http_server_port(server));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    wire_close(&wire);
    http_server_free(server);
    return 0;
}

static void wait_until_more(atomic_uint *counter, unsigned than)
{
    for (uint64_t end = clock_ms() + 20000; *counter <= than && clock_ms() < end;)
        sched_yield();
    assert_true(*counter > than);
}

static void begin_put(void)
{
    wire_print(&wire, "PUT /things HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", BODY_BYTES);
}

static void send_body(void)
{
    _cleanup_free_ char *body = xcalloc(1, BODY_BYTES);
    wire_send(&wire, body, BODY_BYTES);
}

static void finish(int status, size_t body)
{
    struct wire_reply r;
    wire_read(&wire, false, &r);
    assert_int_equal(r.status, status);
    assert_true(r.complete);
    assert_int_equal(r.body.len, body);
    wire_reply_done(&r);
    wait_until_more(&ended, 0);
    assert_in_range(longest, 1, STEP_MAX);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void test_a_body_waits(void **state)
{
    (void)state;
    begin_put();
    wait_until_more(&asked, 2); /* it asks again by itself */
    assert_int_equal(received, 0);
    answer = HTTP_PACE_GO;
    send_body();
    finish(204, 0);
    assert_int_equal(received, BODY_BYTES);
}

static void test_a_reply_waits(void **state)
{
    (void)state;
    wire_print(&wire, "GET /things HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_until_more(&asked, 2);
    assert_int_equal(read_bytes, 0);
    answer = HTTP_PACE_GO;
    finish(200, BODY_BYTES);
    assert_true(asked > BODY_BYTES / STEP_MAX);
}

static void test_a_free_request_is_not_held(void **state)
{
    (void)state;
    answer = HTTP_PACE_FREE;
    begin_put();
    send_body();
    struct wire_reply r;
    wire_read(&wire, false, &r);
    assert_int_equal(r.status, 204);
    wire_reply_done(&r);
}

/* The server ends beside it, without its pace. */
static void test_a_resting_body_does_not_keep_the_server(void **state)
{
    (void)state;
    begin_put();
    wait_until_more(&asked, 2);
}

static void test_a_client_that_goes_while_it_rests(void **state)
{
    (void)state;
    begin_put();
    wait_until_more(&asked, 2);
    wire_close(&wire);
    answer = HTTP_PACE_GO;
    wait_until_more(&ended, 0);
    wire = wire_open(http_server_port(server));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_body_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_reply_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_free_request_is_not_held, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_resting_body_does_not_keep_the_server, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_client_that_goes_while_it_rests, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
