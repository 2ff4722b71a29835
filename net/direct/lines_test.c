/* Connections that are kept between reads, as the node sees them. */
#include "net/direct/lines.h"

#include <poll.h>
#include <sys/resource.h>

#include "net/testing/direct_fixture.h"

enum { LARGE = 3 << 20 };

static const size_t sizes[] = {
    0, 1, 1000, 20000, DIRECT_SMALL_BYTES, DIRECT_SMALL_BYTES + 1, 256 << 10, LARGE, 1000};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void script_all_sizes(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    for (size_t i = 0; i < SIZES; i++) {
        reply_pattern(c, sizes[i]);
        assert_true(peer_saw(c, "GET /at?a=b HTTP/1.1\r\n"));
        assert_true(peer_saw(c, "\r\nQuestion: why\r\n"));
        assert_true(peer_saw(c, "\r\nEmpty:\r\n"));
        assert_true(peer_saw(c, "\r\nX-Request-Id: "));
    }
    peer_close(c);
}

static void read_all_sizes(const char *target)
{
    peer_start(&dx.node, script_all_sizes, NULL);
    struct wire w = wire_open(fx.port);
    for (size_t i = 0; i < SIZES; i++)
        get_pattern(&w, target, sizes[i]);
    wire_close(&w);
    peer_join(&dx.node);
    assert_int_equal(dx.node.accepted, 1);
}

static void test_one_connection_has_all_sizes(void **state)
{
    (void)state;
    read_all_sizes("/read");
}

static void test_a_read_begins_in_another_thread(void **state)
{
    (void)state;
    read_all_sizes("/read?later=true");
}

static void script_dies_when_asked_again(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    reply_pattern(c, 1000);
    peer_read_request(c);
    peer_close(c);
    c = peer_accept(p);
    reply_pattern(c, 2000);
    peer_close(c);
}

static void test_a_kept_connection_dies_under_a_read(void **state)
{
    (void)state;
    peer_start(&dx.node, script_dies_when_asked_again, NULL);
    struct wire w = wire_open(fx.port);
    get_pattern(&w, "/read", 1000);
    get_pattern(&w, "/read", 2000);
    wire_close(&w);
    peer_join(&dx.node);
    assert_int_equal(dx.node.accepted, 2);
}

static void script_begins_a_second_reply(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    reply_pattern(c, 1000);
    peer_read_request(c);
    peer_print(c, "HTTP");
    peer_close(c);
}

/* A byte of a reply has come: the node may have done something. */
static void test_a_reply_that_has_begun_is_not_asked_for_again(void **state)
{
    (void)state;
    peer_start(&dx.node, script_begins_a_second_reply, NULL);
    struct wire w = wire_open(fx.port);
    get_pattern(&w, "/read", 1000);
    get_error(&w, "network_error", "before the reply's head");
    wire_close(&w);
    peer_join(&dx.node);
    assert_int_equal(dx.node.accepted, 1);
}

static void script_sends_more_than_it_says(struct peer *p)
{
    static const char forged[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno";
    struct peer_conn *c = peer_accept(p);
    peer_read_request(c);
    peer_print(c, "HTTP/1.1 200 OK\r\nWord: yes\r\nContent-Length: 1\r\n\r\n%c%s", pattern(0),
               forged);
    struct peer_conn *other = peer_accept(p);
    reply_pattern(other, 1000);
    peer_close(other);
    peer_close(c);
}

static void test_what_follows_a_reply_is_not_the_next_one(void **state)
{
    (void)state;
    peer_start(&dx.node, script_sends_more_than_it_says, NULL);
    struct wire w = wire_open(fx.port);
    get_pattern(&w, "/read", 1);
    get_pattern(&w, "/read", 1000);
    wire_close(&w);
    peer_join(&dx.node);
    assert_int_equal(dx.node.accepted, 2);
}

/* The last of a large body and what follows it, in one packet: the read takes just its bytes. */
static void script_sends_more_behind_its_end(struct peer *p)
{
    static const char end[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno";
    const size_t *len = p->ctx;
    char tail[100 + sizeof end - 1];
    struct peer_conn *c = peer_accept(p);
    peer_read_request(c);
    peer_print(c, "HTTP/1.1 200 OK\r\nWord: yes\r\nContent-Length: %zu\r\n\r\n", *len);
    send_pattern(c, 0, *len - 100);
    for (size_t i = 0; i < 100; i++)
        tail[i] = pattern(*len - 100 + i);
    memcpy(tail + 100, end, sizeof end - 1);
    peer_send(c, tail, sizeof tail);
    struct peer_conn *other = peer_accept(p);
    reply_pattern(other, 1000);
    peer_close(other);
    peer_close(c);
}

static void test_what_follows_a_large_reply_is_not_the_next_one(void **state)
{
    (void)state;
    static const size_t lengths[] = {40000, DIRECT_SMALL_BYTES, 200000, LARGE};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        size_t len = lengths[i];
        peer_start(&dx.node, script_sends_more_behind_its_end, &len);
        struct wire w = wire_open(fx.port);
        get_pattern(&w, "/read", len);
        get_pattern(&w, "/read", 1000);
        wire_close(&w);
        peer_join(&dx.node);
        assert_int_equal(dx.node.accepted, 2);
    }
}

static void script_small_and_large(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    reply_pattern(c, 1000);
    reply_pattern(c, LARGE);
    reply_pattern(c, LARGE);
    peer_close(c);
}

/* So many descriptors as the process has. */
static void allow_no_more_descriptors(struct rlimit *before)
{
    int next = dup(0);
    assert_true(next > 0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, before), 0);
    const struct rlimit now = {.rlim_cur = (rlim_t)next, .rlim_max = before->rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
}

static void test_a_body_needs_no_pipe(void **state)
{
    (void)state;
    struct rlimit before;
    peer_start(&dx.node, script_small_and_large, NULL);
    struct wire w = wire_open(fx.port);
    get_pattern(&w, "/read", 1000);
    allow_no_more_descriptors(&before);
    get_pattern(&w, "/read", LARGE);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    get_pattern(&w, "/read", LARGE);
    wire_close(&w);
    peer_join(&dx.node);
    assert_int_equal(dx.node.accepted, 1);
}

static void script_says_close(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    peer_read_request(c);
    peer_print(c,
               "HTTP/1.1 200 OK\r\nWord: yes\r\nConnection: close\r\nContent-Length: 1\r\n\r\n%c",
               pattern(0));
    struct peer_conn *other = peer_accept(p);
    reply_pattern(other, 1000);
    peer_close(other);
    peer_close(c);
}

static void test_a_connection_that_is_to_end_is_not_kept(void **state)
{
    (void)state;
    peer_start(&dx.node, script_says_close, NULL);
    struct wire w = wire_open(fx.port);
    get_pattern(&w, "/read", 1);
    get_pattern(&w, "/read", 1000);
    wire_close(&w);
    peer_join(&dx.node);
    assert_int_equal(dx.node.accepted, 2);
}

static void script_two_at_once(struct peer *p)
{
    struct peer_conn *c[2];
    struct pollfd ends[2];
    for (int i = 0; i < 2; i++)
        assert_true(peer_read_request(c[i] = peer_accept(p)));
    for (int i = 0; i < 2; i++) {
        peer_print(c[i], "HTTP/1.1 200 OK\r\nWord: yes\r\nContent-Length: 1\r\n\r\n%c", pattern(0));
        ends[i] = (struct pollfd){.fd = c[i]->fd, .events = POLLIN};
    }
    assert_true(poll(ends, 2, 20000) > 0);
    char next; /* the kept one may have its next request by now, the other has its end */
    int ready = ends[0].revents != 0 ? 0 : 1;
    int kept = recv(c[ready]->fd, &next, 1, MSG_PEEK) == 0 ? 1 - ready : ready;
    assert_int_equal(recv(c[1 - kept]->fd, &next, 1, MSG_PEEK), 0);
    peer_close(c[1 - kept]);
    reply_pattern(c[kept], 1000);
    peer_close(c[kept]);
}

static void test_no_more_connections_are_kept_than_may_be(void **state)
{
    (void)state;
    struct wire_reply r;
    peer_start(&dx.node, script_two_at_once, NULL);
    struct wire w[2] = {wire_open(fx.port), wire_open(fx.port)};
    for (int i = 0; i < 2; i++)
        wire_print(&w[i], "GET /read HTTP/1.1\r\nHost: x\r\n\r\n");
    for (int i = 0; i < 2; i++) {
        wire_read(&w[i], false, &r);
        assert_int_equal(r.status, 200);
        wire_reply_done(&r);
    }
    get_pattern(&w[0], "/read", 1000);
    wire_close(&w[0]);
    wire_close(&w[1]);
    peer_join(&dx.node);
    assert_int_equal(dx.node.accepted, 2);
}

static void test_a_name_whose_address_is_learned(void **state)
{
    (void)state;
    struct wire_reply r;
    char url[64], address[64];
    peer_start(&dx.node, script_all_sizes, NULL);
    snprintf(url, sizeof url, "http://some.node:%u/at", dx.node.port);
    snprintf(address, sizeof address, "127.0.0.1:%u", dx.node.port);
    struct wire w = wire_open(fx.port);
    wire_get(&w, "GET", "/read?host=some.node", &r);
    wire_assert_code(&r, "not_found");
    wire_reply_done(&r);
    direct_learn(dx.reader, url, address);
    for (size_t i = 0; i < SIZES; i++)
        get_pattern(&w, "/read?host=some.node", sizes[i]);
    wire_close(&w);
    peer_join(&dx.node);
    assert_int_equal(dx.node.accepted, 1);
}

static int setup_keeping_one(void **state)
{
    (void)state;
    return direct_setup_keeping(1);
}

/* --- TLS of the client ------------------------------------------------------------------------ */

static int setup_tls(void **state)
{
    fixture_begin_tls();
    return direct_setup(state);
}

static int teardown_tls(void **state)
{
    direct_teardown(state);
    fixture_end_tls();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        read_test(test_one_connection_has_all_sizes),
        read_test(test_a_read_begins_in_another_thread),
        read_test(test_a_kept_connection_dies_under_a_read),
        read_test(test_a_reply_that_has_begun_is_not_asked_for_again),
        read_test(test_what_follows_a_reply_is_not_the_next_one),
        read_test(test_what_follows_a_large_reply_is_not_the_next_one),
        read_test(test_a_body_needs_no_pipe),
        read_test(test_a_connection_that_is_to_end_is_not_kept),
        read_test(test_a_name_whose_address_is_learned),
        cmocka_unit_test_setup_teardown(test_no_more_connections_are_kept_than_may_be,
                                        setup_keeping_one, direct_teardown),
        cmocka_unit_test_setup_teardown(test_one_connection_has_all_sizes, setup_tls, teardown_tls),
    };
    fx.layer = HTTP_LAYER_EPOLL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
