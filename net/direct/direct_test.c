/* What a node replies to a read, and what of it the client gets. */
#include "net/direct/direct.h"

#include <errno.h>
#include <semaphore.h>
#include <sys/socket.h>

#include "net/testing/direct_fixture.h"

enum { LARGE = 3 << 20 };

/* --- other replies ---------------------------------------------------------------------------- */

static void script_in_chunks(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    peer_read_request(c);
    peer_print(c, "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nWord: yes\r\n"
                  "Transfer-Encoding: chunked\r\n\r\n");
    for (size_t at = 0; at < LARGE; at += LARGE / 64) {
        peer_print(c, "%x\r\n", LARGE / 64);
        send_pattern(c, at, LARGE / 64);
        peer_print(c, "\r\n");
    }
    peer_print(c, "0\r\n\r\n");
    reply_pattern(c, 1000);
    peer_close(c);
}

static void test_chunks(void **state)
{
    (void)state;
    peer_start(&dx.node, script_in_chunks, NULL);
    struct wire w = wire_open(fx.port);
    get_pattern(&w, "/read", LARGE);
    get_pattern(&w, "/read", 1000);
    wire_close(&w);
    peer_join(&dx.node);
    assert_int_equal(dx.node.accepted, 1);
}

static void script_without_bodies(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    peer_read_request(c);
    peer_print(c, "HTTP/1.1 200 OK\r\nWord: yes\r\nContent-Length: 5000000\r\n\r\n");
    peer_read_request(c);
    peer_print(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 55\r\n\r\n%-55s",
               "{\"code\": \"object_not_found\", \"message\": \"none\"}");
    reply_pattern(c, 10);
    peer_close(c);
}

static void test_a_head_and_an_error(void **state)
{
    (void)state;
    struct wire_reply r;
    peer_start(&dx.node, script_without_bodies, NULL);
    struct wire w = wire_open(fx.port);
    wire_get(&w, "HEAD", "/read", &r);
    assert_int_equal(r.status, 200);
    assert_string_equal(wire_header(&r, "Content-Length"), "5000000");
    wire_reply_done(&r);
    get_error(&w, "object_not_found", "none");
    get_pattern(&w, "/read", 10);
    wire_close(&w);
    peer_join(&dx.node);
    assert_int_equal(dx.node.accepted, 1);
}

static const char *const malformed[] = {
    "nonsense\r\n\r\n",
    "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nxx",
    "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nxx",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nxx",
    "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
    "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
};
enum { MALFORMED = sizeof malformed / sizeof malformed[0] };

static void script_malformed(struct peer *p)
{
    for (size_t i = 0; i < MALFORMED; i++) {
        struct peer_conn *c = peer_accept(p);
        peer_read_request(c);
        peer_print(c, "%s", malformed[i]);
        peer_close(c);
    }
}

static void test_malformed_replies(void **state)
{
    (void)state;
    peer_start(&dx.node, script_malformed, NULL);
    struct wire w = wire_open(fx.port);
    for (size_t i = 0; i < MALFORMED; i++)
        get_error(&w, "network_error", "127.0.0.1:");
    wire_close(&w);
    peer_join(&dx.node);
    assert_int_equal(dx.node.accepted, MALFORMED);
}

static void script_head_without_end(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    peer_read_request(c);
    bool takes = peer_print(c, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; takes && i < DIRECT_HEAD_BYTES; i++)
        takes = peer_print(c, "a: b\r\n");
    peer_close(c);
}

static void test_a_head_without_end(void **state)
{
    (void)state;
    peer_start(&dx.node, script_head_without_end, NULL);
    struct wire w = wire_open(fx.port);
    get_error(&w, "network_error", "too large");
    wire_close(&w);
    peer_join(&dx.node);
}

static void script_heads_without_end(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    peer_read_request(c);
    bool takes = true;
    for (int i = 0; takes && i < 1000000; i++)
        takes = peer_print(c, "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n");
    peer_close(c);
}

static void test_heads_without_end(void **state)
{
    (void)state;
    peer_start(&dx.node, script_heads_without_end, NULL);
    struct wire w = wire_open(fx.port);
    get_error(&w, "network_error", "too large");
    wire_close(&w);
    peer_join(&dx.node);
}

static void script_ends_after_a_hint(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    reply_pattern(c, 1000);
    peer_read_request(c);
    peer_print(c, "HTTP/1.1 103 Early Hints\r\n\r\n");
    peer_close(c);
}

static void test_a_read_with_a_hint_is_not_repeated(void **state)
{
    (void)state;
    peer_start(&dx.node, script_ends_after_a_hint, NULL);
    struct wire w = wire_open(fx.port);
    get_pattern(&w, "/read", 1000);
    get_error(&w, "network_error", "before the reply's head");
    wire_close(&w);
    peer_join(&dx.node);
}

/* --- nodes that end, or do nothing ------------------------------------------------------------ */

static void script_ends_early(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    peer_read_request(c);
    peer_print(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", LARGE);
    send_pattern(c, 0, LARGE - 1);
    peer_close(c);
}

static void test_a_large_reply_that_ends_early_is_cut(void **state)
{
    (void)state;
    peer_start(&dx.node, script_ends_early, NULL);
    struct wire w = wire_open(fx.port);
    get_cut(&w, 1);
    wire_close(&w);
    peer_join(&dx.node);
}

static void script_ends_early_in_chunks(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    peer_read_request(c);
    peer_print(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n", LARGE);
    send_pattern(c, 0, LARGE);
    peer_print(c, "\r\n");
    peer_close(c);
}

/* Its client knows the end of a body without a length by the end of the connection. */
static void test_a_cut_reply_of_http_1_0_ends_with_a_reset(void **state)
{
    (void)state;
    char some[4096];
    ssize_t n;
    peer_start(&dx.node, script_ends_early_in_chunks, NULL);
    struct wire w = wire_open(fx.port);
    wire_print(&w, "GET /read HTTP/1.0\r\n\r\n");
    while ((n = wire_recv_plain(&w, some, sizeof some)) > 0)
        ;
    assert_int_equal(n, -1);
    assert_int_equal(errno, ECONNRESET);
    wire_close(&w);
    peer_join(&dx.node);
}

struct silent {
    size_t sent; /* of a large reply; 0: not even its head */
    sem_t over;
};

static void script_falls_silent(struct peer *p)
{
    struct silent *s = p->ctx;
    struct peer_conn *c = peer_accept(p);
    peer_read_request(c);
    if (s->sent > 0) {
        peer_print(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", LARGE);
        send_pattern(c, 0, s->sent);
    }
    sem_wait(&s->over);
    peer_close(c);
}

static void test_a_silent_node(void **state)
{
    (void)state;
    struct silent s = {.sent = 0};
    sem_init(&s.over, 0, 0);
    peer_start(&dx.node, script_falls_silent, &s);
    struct wire w = wire_open(fx.port);
    get_error(&w, "timeout", "no byte moved");
    sem_post(&s.over);
    wire_close(&w);
    peer_join(&dx.node);
    sem_destroy(&s.over);
}

/* What has come reaches the dx.client, also if it is less than a reader is woken for. */
static void test_a_node_that_falls_silent_in_its_reply(void **state)
{
    (void)state;
    struct silent s = {.sent = 300000};
    sem_init(&s.over, 0, 0);
    peer_start(&dx.node, script_falls_silent, &s);
    struct wire w = wire_open(fx.port);
    get_cut(&w, s.sent);
    sem_post(&s.over);
    wire_close(&w);
    peer_join(&dx.node);
    sem_destroy(&s.over);
}

static void script_waits_for_the_end(struct peer *p)
{
    char one;
    struct peer_conn *c = peer_accept(p);
    peer_read_request(c);
    peer_print(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", LARGE);
    send_pattern(c, 0, 100000);
    if (peer_read_some(c, &one, 1) != 0)
        fail_msg("the connection goes on");
    peer_close(c);
}

static void test_a_client_that_leaves(void **state)
{
    (void)state;
    peer_start(&dx.node, script_waits_for_the_end, NULL);
    struct wire w = wire_open(fx.port);
    wire_print(&w, "GET /read HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_int_equal(wire_peek(&w, 20000), 1);
    wire_close(&w);
    peer_join(&dx.node);
}

static void test_no_node(void **state)
{
    (void)state;
    peer_start(&dx.node, script_ends_early, NULL);
    struct wire w = wire_open(fx.port);
    get_cut(&w, 1);
    wire_close(&w);
    peer_join(&dx.node); /* nobody listens at its port any more */
    w = wire_open(fx.port);
    get_error(&w, "network_error", "no connection");
    wire_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        read_test(test_chunks),
        read_test(test_a_head_and_an_error),
        read_test(test_malformed_replies),
        read_test(test_a_head_without_end),
        read_test(test_heads_without_end),
        read_test(test_a_read_with_a_hint_is_not_repeated),
        read_test(test_a_large_reply_that_ends_early_is_cut),
        read_test(test_a_cut_reply_of_http_1_0_ends_with_a_reset),
        read_test(test_a_silent_node),
        read_test(test_a_node_that_falls_silent_in_its_reply),
        read_test(test_a_client_that_leaves),
        read_test(test_no_node),
    };
    fx.layer = HTTP_LAYER_EPOLL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
