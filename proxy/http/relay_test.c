/* Requests that stream through a whole proxy to targets that only answer HTTP. */
#include "proxy/http/relay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/clock.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/rng.h"
#include "proxy/testing/test_cluster.h"

/* A primary, a target behind it, and a bucket. */
struct world {
    struct test_client client;
    struct test_proxy *proxy;
    struct fake_target *target;
};

static const char *const small_buffers[] = {"relay_buffer=16KiB", "stall_timeout=60s",
                                            "owner_wait=10m",     "keepalive_timeout=10m",
                                            "relays_max=8",       NULL};

static int setup(void **state)
{
    struct world *w = xcalloc(1, sizeof *w);
    test_client_open(&w->client);
    w->proxy = test_proxy_new("p1", NULL, small_buffers);
    w->target = fake_target_new("t1");
    test_join(&w->client, w->proxy, w->target);
    json_decref(test_json(&w->client, HTTP_POST, w->proxy->proxy->public_url, "/v1/buckets/b",
                          "{\"action\": \"create\"}", 201));
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    test_client_close(&w->client);
    test_proxy_free(w->proxy);
    fake_target_free(w->target);
    free(w);
    return 0;
}

static const char *base(const struct world *w)
{
    return w->proxy->proxy->public_url;
}

static unsigned relays(const struct world *w)
{
    return atomic_load(&w->proxy->proxy->relays);
}

/* One object call that is not to be redirected. */
static int relayed(struct world *w, enum http_method method, const char *object, const char *more,
                   const void *body, size_t len, struct http_result *r)
{
    _cleanup_free_ char *url = xprintf("%s/v1/objects/b/%s", base(w), object);
    const char *headers[] = {"Dfc-Redirect: never", more, NULL};
    const struct http_call call = {
        .method = method,
        .url = url,
        .headers = headers,
        .body = body,
        .body_len = len,
        .reply_max = 64 << 20,
        .total_timeout_ms = 30000,
    };
    http_call_wait(w->client.client, &call, r, NULL);
    return r->code != 0 ? r->code : r->status;
}

static void both_ways_the_bytes_are_the_same(void **state)
{
    struct world *w = *state;
    static const size_t sizes[] = {0, 1, 16384, 16385, 3000001};
    struct rng rng;
    rng_seed(&rng, 3);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        _cleanup_free_ char *data = xmalloc(sizes[i] + 1);
        for (size_t at = 0; at < sizes[i]; at++)
            data[at] = (char)rng_next(&rng);
        struct http_result put = {0};
        assert_int_equal(relayed(w, HTTP_PUT, "o", NULL, data, sizes[i], &put), 200);
        assert_string_equal(put.etag, "\"1.2.3\"");
        struct http_result get = {0};
        assert_int_equal(relayed(w, HTTP_GET, "o", NULL, NULL, 0, &get), 200);
        assert_int_equal(get.body.len, sizes[i]);
        if (sizes[i] > 0)
            assert_memory_equal(get.body.data, data, sizes[i]);
        http_result_done(&put);
        http_result_done(&get);
    }
    struct http_result deleted = {0};
    assert_int_equal(relayed(w, HTTP_DELETE, "o", NULL, NULL, 0, &deleted), 204);
    http_result_done(&deleted);
    test_until(relays(w) == 0);
}

static void the_target_sees_the_request_as_it_was(void **state)
{
    struct world *w = *state;
    char value[64];
    struct http_result r = {0};
    assert_int_equal(
        relayed(w, HTTP_PUT, "a%2F%2e./%C3%A9?dfcx=1&dfcv=0.0", "Dfc-Meta-A: b; c", "x", 1, &r),
        200);
    http_result_done(&r);
    fake_target_header(w->target, "object", value);
    assert_string_equal(value, "a/../\xc3\xa9");
    fake_target_header(w->target, "query", value);
    _cleanup_state_ const struct cluster_state *s = state_current(w->proxy->proxy->state);
    char query[64];
    snprintf(query, sizeof query, "dfcx=1&dfcb=1&dfcv=%llu.3", (unsigned long long)s->term);
    assert_string_equal(value, query);
    fake_target_header(w->target, "Dfc-Meta-A", value);
    assert_string_equal(value, "b; c");
    fake_target_header(w->target, "Dfc-Redirect", value);
    assert_string_equal(value, "never"); /* it must not redirect a body that is under way */
    /* Nobody has said what the body is. */
    assert_int_equal(relayed(w, HTTP_PUT, "o", "Content-Type:", "", 0, &r), 200);
    http_result_done(&r);
    fake_target_header(w->target, "Content-Type", value);
    assert_string_equal(value, "");
    assert_int_equal(relayed(w, HTTP_GET, "o", "Range: bytes=5-9", NULL, 0, &r), 200);
    http_result_done(&r);
    fake_target_header(w->target, "Range", value);
    assert_string_equal(value, "bytes=5-9");
}

static char *exchange(const struct world *w, const char *request)
{
    int fd = test_connect(base(w));
    test_send(fd, request, strlen(request));
    char *reply = test_read_all(fd);
    close(fd);
    return reply;
}

static void the_client_sees_the_reply_as_it_was(void **state)
{
    struct world *w = *state;
    struct http_result r = {0};
    assert_int_equal(relayed(w, HTTP_PUT, "o", NULL, "hello", 5, &r), 200);
    http_result_done(&r);
    static const char *const methods[] = {"GET", "HEAD"};
    for (size_t i = 0; i < 2; i++) {
        _cleanup_free_ char *request =
            xprintf("%s /v1/objects/b/o?redirect=never HTTP/1.1\r\nHost: localhost\r\n"
                    "Connection: close\r\n\r\n",
                    methods[i]);
        _cleanup_free_ char *reply = exchange(w, request);
        const char *body = strstr(reply, "\r\n\r\n");
        assert_non_null(body);
        assert_string_equal(body + 4, i == 0 ? "hello" : "");
        assert_ptr_equal(strstr(reply, "HTTP/1.1 200 "), reply);
        assert_non_null(strstr(reply, "\r\nContent-Length: 5\r\n"));
        assert_non_null(strstr(reply, "\r\nDfc-Meta-Colour: blue\r\n"));
        assert_non_null(strstr(reply, "\r\nContent-Type: image/x-test\r\n"));
        assert_non_null(strstr(reply, "\r\nDfc-Node: p1\r\n"));
        assert_null(strstr(reply, "Dfc-Node: t1")); /* what each says of itself is not doubled */
    }
}

static void what_is_of_one_connection_stays_there(void **state)
{
    struct world *w = *state;
    _cleanup_free_ char *reply =
        exchange(w, "DELETE /v1/objects/b/o?redirect=never HTTP/1.1\r\nHost: localhost\r\n"
                    "Connection: X-One\r\nX-One: 1\r\nX-Two: 2\r\nX-Three: 3\r\n"
                    "Connection: close, X-Two\r\n\r\n");
    assert_ptr_equal(strstr(reply, "HTTP/1.1 204 "), reply);
    char value[64];
    static const struct {
        const char *name, *value;
    } rows[] = {{"X-One", ""}, {"X-Two", ""}, {"X-Three", "3"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fake_target_header(w->target, rows[i].name, value);
        assert_string_equal(value, rows[i].value);
    }
}

static void a_chunked_body_goes_through(void **state)
{
    struct world *w = *state;
    _cleanup_free_ char *reply = exchange(
        w, "PUT /v1/objects/b/o?redirect=never HTTP/1.1\r\nHost: localhost\r\nConnection: close"
           "\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n");
    assert_ptr_equal(strstr(reply, "HTTP/1.1 200 "), reply);
    struct http_result r = {0};
    assert_int_equal(relayed(w, HTTP_GET, "o", NULL, NULL, 0, &r), 200);
    assert_string_equal(buf_str(&r.body), "hello world");
    http_result_done(&r);
}

static void a_refusal_comes_before_the_body_is_over(void **state)
{
    struct world *w = *state;
    fake_target_mode(w->target, FAKE_REFUSES);
    size_t len = 30 << 20;
    _cleanup_free_ char *data = xcalloc(1, len);
    struct http_result r = {0};
    assert_int_equal(relayed(w, HTTP_PUT, "o", NULL, data, len, &r), 507);
    assert_non_null(strstr(buf_str(&r.body), "no_space"));
    assert_non_null(strstr(buf_str(&r.body), "says the test"));
    http_result_done(&r);
    test_until(relays(w) == 0);
}

/* The client's side waits, with most of its body unsent: it is told nevertheless. */
static void a_refusal_reaches_a_client_that_sends_slowly(void **state)
{
    struct world *w = *state;
    fake_target_mode(w->target, FAKE_REFUSES);
    static const char head[] = "PUT /v1/objects/b/o?redirect=never HTTP/1.1\r\nHost: localhost\r\n"
                               "Connection: close\r\nContent-Length: 1000000\r\n\r\n";
    int fd = test_connect(base(w));
    test_send(fd, head, strlen(head));
    char byte = 'x';
    struct timeval soon = {.tv_usec = 2000};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon), 0);
    char reply[16] = {0};
    test_until((test_send(fd, &byte, 1), recv(fd, reply, 15, 0) > 0));
    assert_ptr_equal(strstr(reply, "HTTP/1.1 507 "), reply);
    close(fd);
    test_until(relays(w) == 0);
}

static void a_body_that_is_cut_is_cut_at_the_target(void **state)
{
    struct world *w = *state;
    static const char head[] = "PUT /v1/objects/b/o?redirect=never HTTP/1.1\r\nHost: localhost\r\n"
                               "Content-Length: 1000000\r\n\r\nhalf";
    for (unsigned i = 1; i <= 3; i++) {
        int fd = test_connect(base(w));
        test_send(fd, head, strlen(head));
        uint64_t before = 4 * (uint64_t)(i - 1);
        test_until(fake_target_received(w->target) > before);
        close(fd);
        test_until(fake_target_cut(w->target) == i);
    }
    test_until(relays(w) == 0);
}

static void a_reply_that_is_cut_cannot_look_whole(void **state)
{
    struct world *w = *state;
    struct http_result r = {0};
    _cleanup_free_ char *data = xcalloc(1, 500000);
    assert_int_equal(relayed(w, HTTP_PUT, "o", NULL, data, 500000, &r), 200);
    http_result_done(&r);
    fake_target_mode(w->target, FAKE_HANGS_UP);
    r = (struct http_result){0};
    assert_int_equal(relayed(w, HTTP_GET, "o", NULL, NULL, 0, &r), E_NET);
    http_result_done(&r);
    test_until(relays(w) == 0);
}

static void a_client_that_leaves_ends_the_stream(void **state)
{
    struct world *w = *state;
    fake_target_mode(w->target, FAKE_NEVER_ENDS);
    static const char request[] =
        "GET /v1/objects/b/o?redirect=never HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for (int i = 0; i < 3; i++) {
        int fd = test_connect(base(w));
        test_send(fd, request, strlen(request));
        char some[100];
        assert_true(recv(fd, some, sizeof some, 0) > 0);
        close(fd);
        test_until(relays(w) == 0);
    }
}

static void a_limit_holds_for_streams(void **state)
{
    struct world *w = *state;
    fake_target_mode(w->target, FAKE_NEVER_ENDS);
    static const char request[] =
        "GET /v1/objects/b/o?redirect=never HTTP/1.1\r\nHost: localhost\r\n\r\n";
    int fds[8];
    for (int i = 0; i < 8; i++) {
        fds[i] = test_connect(base(w));
        test_send(fds[i], request, strlen(request));
    }
    test_until(relays(w) == 8);
    test_error(&w->client, HTTP_GET, base(w), "/v1/objects/b/o?redirect=never", NULL, 503,
               "overloaded", "limit");
    for (int i = 0; i < 8; i++)
        close(fds[i]);
    test_until(relays(w) == 0);
}

static void a_target_that_is_not_there_is_named(void **state)
{
    struct world *w = *state;
    fake_target_free(w->target);
    test_error(&w->client, HTTP_GET, base(w), "/v1/objects/b/o?redirect=never", NULL, 502,
               "network_error", "http://127.0.0.1:");
    test_error(&w->client, HTTP_PUT, base(w), "/v1/objects/b/o?redirect=never", "body", 502,
               "network_error", "http://127.0.0.1:");
    test_until(relays(w) == 0);
    w->target = fake_target_new("t1");
}

static int read_of_copies(struct world *w, const char *method)
{
    json_decref(test_json(&w->client, HTTP_POST, base(w), "/v1/buckets/c",
                          "{\"action\": \"create\", \"value\": {\"copies\": 2}}", 201));
    _cleanup_free_ char *request = xprintf("%s /v1/objects/c/o?redirect=never HTTP/1.1\r\n"
                                           "Host: localhost\r\nConnection: close\r\n\r\n",
                                           method);
    int fd = test_connect(base(w));
    test_send(fd, request, strlen(request));
    test_until(relays(w) == 1);
    return fd;
}

static void a_read_waits_for_an_owner_that_can_answer(void **state)
{
    struct world *w = *state;
    fake_target_mode(w->target, FAKE_IS_BUSY);
    int fd = read_of_copies(w, "GET");
    test_until(fake_target_busy(w->target) >= 3);
    fake_target_mode(w->target, FAKE_STORES);
    _cleanup_free_ char *reply = test_read_all(fd);
    assert_ptr_equal(strstr(reply, "HTTP/1.1 200 "), reply);
    assert_null(strstr(reply, "not now"));
    close(fd);
    test_until(relays(w) == 0);
}

static void a_read_waits_for_an_owner_that_can_be_reached(void **state)
{
    struct world *w = *state;
    fake_target_free(w->target);
    int fd = read_of_copies(w, "HEAD");
    w->target = fake_target_new("t1"); /* elsewhere */
    test_join(&w->client, w->proxy, w->target);
    _cleanup_free_ char *reply = test_read_all(fd);
    assert_ptr_equal(strstr(reply, "HTTP/1.1 200 "), reply);
    close(fd);
    test_until(relays(w) == 0);
}

static void who_waits_is_told_when_the_proxy_ends(void **state)
{
    struct world *w = *state;
    fake_target_free(w->target);
    int fd = read_of_copies(w, "GET");
    test_proxy_stop(w->proxy);
    _cleanup_free_ char *reply = test_read_all(fd);
    assert_ptr_equal(strstr(reply, "HTTP/1.1 503 "), reply);
    close(fd);
    test_proxy_start(w->proxy);
    w->target = fake_target_new("t1");
}

/* A quarter of the relays may wait; who comes then is told at once what the owner says. */
static void not_all_relays_wait(void **state)
{
    struct world *w = *state;
    fake_target_mode(w->target, FAKE_IS_BUSY);
    int fds[2] = {read_of_copies(w, "GET"), test_connect(base(w))};
    static const char request[] =
        "GET /v1/objects/c/o?redirect=never HTTP/1.1\r\nHost: localhost\r\n"
        "Connection: close\r\n\r\n";
    test_send(fds[1], request, strlen(request));
    test_until(atomic_load(&w->proxy->proxy->reads_waiting) == 2);
    test_error(&w->client, HTTP_GET, base(w), "/v1/objects/c/o?redirect=never", NULL, 503,
               "node_unreachable", "not now");
    fake_target_mode(w->target, FAKE_STORES);
    for (int i = 0; i < 2; i++) {
        _cleanup_free_ char *reply = test_read_all(fds[i]);
        assert_ptr_equal(strstr(reply, "HTTP/1.1 200 "), reply);
        close(fds[i]);
    }
    test_until(atomic_load(&w->proxy->proxy->reads_waiting) == 0);
}

/* Its bytes could not be sent twice. */
static void a_read_with_a_body_does_not_wait(void **state)
{
    struct world *w = *state;
    fake_target_mode(w->target, FAKE_IS_BUSY);
    close(read_of_copies(w, "GET"));
    fake_target_mode(w->target, FAKE_STORES);
    test_until(relays(w) == 0);
    fake_target_mode(w->target, FAKE_IS_BUSY);
    _cleanup_free_ char *reply =
        exchange(w, "GET /v1/objects/c/o?redirect=never HTTP/1.1\r\nHost: localhost\r\n"
                    "Connection: close\r\nContent-Length: 4\r\n\r\nbody");
    assert_ptr_equal(strstr(reply, "HTTP/1.1 503 "), reply);
}

static void the_proxy_ends_with_streams_under_way(void **state)
{
    struct world *w = *state;
    fake_target_mode(w->target, FAKE_NEVER_ENDS);
    static const char request[] =
        "GET /v1/objects/b/o?redirect=never HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static const char upload[] =
        "PUT /v1/objects/b/o?redirect=never HTTP/1.1\r\nHost: localhost\r\n"
        "Content-Length: 1000000\r\n\r\nhalf";
    int get = test_connect(base(w));
    int put = test_connect(base(w));
    test_send(get, request, strlen(request));
    test_send(put, upload, strlen(upload));
    test_until(relays(w) == 2);
    uint64_t began = clock_ms();
    test_proxy_stop(w->proxy);
    assert_true(clock_ms() - began < 15000);
    close(get);
    close(put);
    test_proxy_start(w->proxy);
}

/* A target that answers nobody holds up neither the others' streams nor the proxy's end. */
static void a_target_that_hangs(void **state)
{
    struct world *w = *state;
    enum { MANY = 70 };
    static const char *const patient[] = {"relays_max=100", "stall_timeout=1h", NULL};
    struct test_proxy *p = test_proxy_new("p2", NULL, patient);
    test_join(&w->client, p, w->target);
    const char *url = p->proxy->public_url;
    json_decref(
        test_json(&w->client, HTTP_POST, url, "/v1/buckets/b", "{\"action\": \"create\"}", 201));
    fake_target_mode(w->target, FAKE_IS_SILENT);
    static const char request[] =
        "GET /v1/objects/b/o?redirect=never HTTP/1.1\r\nHost: localhost\r\n\r\n";
    int fds[MANY];
    for (int i = 0; i < MANY; i++) {
        fds[i] = test_connect(url);
        test_send(fds[i], request, strlen(request));
    }
    test_until(fake_target_held(w->target) == MANY); /* none waits for another */
    test_proxy_free(p);                              /* and it does not wait for an hour */
    for (int i = 0; i < MANY; i++) {
        char reply[13] = {0};
        assert_int_equal(recv(fds[i], reply, 12, MSG_WAITALL), 12);
        assert_string_equal(reply, "HTTP/1.1 504");
        close(fds[i]);
    }
    fake_target_mode(w->target, FAKE_STORES);
}

int main(void)
{
#define RELAY_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        RELAY_TEST(both_ways_the_bytes_are_the_same),
        RELAY_TEST(the_target_sees_the_request_as_it_was),
        RELAY_TEST(the_client_sees_the_reply_as_it_was),
        RELAY_TEST(what_is_of_one_connection_stays_there),
        RELAY_TEST(a_chunked_body_goes_through),
        RELAY_TEST(a_refusal_comes_before_the_body_is_over),
        RELAY_TEST(a_refusal_reaches_a_client_that_sends_slowly),
        RELAY_TEST(a_body_that_is_cut_is_cut_at_the_target),
        RELAY_TEST(a_reply_that_is_cut_cannot_look_whole),
        RELAY_TEST(a_client_that_leaves_ends_the_stream),
        RELAY_TEST(a_limit_holds_for_streams),
        RELAY_TEST(a_target_that_is_not_there_is_named),
        RELAY_TEST(a_read_waits_for_an_owner_that_can_answer),
        RELAY_TEST(a_read_waits_for_an_owner_that_can_be_reached),
        RELAY_TEST(who_waits_is_told_when_the_proxy_ends),
        RELAY_TEST(not_all_relays_wait),
        RELAY_TEST(a_read_with_a_body_does_not_wait),
        RELAY_TEST(the_proxy_ends_with_streams_under_way),
        RELAY_TEST(a_target_that_hangs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
