/* A listener that speaks TLS: what is offered, what is refused, and its limits.  That requests and
 * replies are the same as on a plain one is shown by the tests of those, which run over both. */
#include "net/tls/tls.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "common/metrics.h"
#include "net/testing/certificate.h"
#include "net/testing/hello_fixture.h"

enum { MANY = 100 };

static struct tls *tls;

static const struct http_route routes[] = {
    {.name = "hello",
     .method = HTTP_GET,
     .pattern = "/hello",
     .nets = 1,
     .right = RIGHT_NONE,
     .begin = hello},
    {.name = NULL},
};

struct limits {
    unsigned connections, handshakes;
    uint64_t handshake_ms;
};

static void start(struct limits limits)
{
    static const struct http_route *const tables[] = {routes, NULL};
    const struct http_server_config config = {
        .node = "n1",
        .address = "127.0.0.1",
        .net = NET_PUBLIC,
        .threads = 1,
        .connections_max = limits.connections,
        .connection_memory = 32 * 1024,
        .idle_timeout_s = 3600,
        .routes = tables,
        .tls = tls,
        .tls_handshake_timeout_ms = limits.handshake_ms,
        .tls_handshakes_max = limits.handshakes,
    };
    struct error err = ERROR_INIT;
    if (http_server_new(&config, &server, &err) != 0)
        fail_msg("%s", err.message);
    port = http_server_port(server);
}

static void start_without_limits(void)
{
    start((struct limits){.connections = MANY, .handshakes = MANY});
}

/* --- what is offered -------------------------------------------------------------------------- */

/* The client of one handshake; NULL where it fails.  Of version 0 all are offered. */
static SSL *offer(int version, const char *ciphers, int *fd)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    assert_non_null(ctx);
    SSL_CTX_set_security_level(ctx, 0); /* so that it offers what is old */
    assert_int_equal(SSL_CTX_set_min_proto_version(ctx, version), 1);
    assert_int_equal(SSL_CTX_set_max_proto_version(ctx, version), 1);
    assert_int_equal(SSL_CTX_set_cipher_list(ctx, ciphers), 1);
    SSL *ssl = SSL_new(ctx);
    SSL_CTX_free(ctx);
    *fd = wire_open_plain(port).fd;
    assert_int_equal(SSL_set_fd(ssl, *fd), 1);
    if (SSL_connect(ssl) == 1)
        return ssl;
    SSL_free(ssl);
    return NULL;
}

static bool is_taken(int version, const char *ciphers)
{
    int fd;
    SSL *ssl = offer(version, ciphers, &fd);
    bool taken = ssl != NULL;
    SSL_free(ssl);
    close(fd);
    return taken;
}

static void test_versions_and_ciphers(void **state)
{
    (void)state;
    start_without_limits();
    assert_false(is_taken(TLS1_VERSION, "ALL"));
    assert_false(is_taken(TLS1_1_VERSION, "ALL"));
    assert_true(is_taken(TLS1_2_VERSION, "ALL"));
    assert_true(is_taken(TLS1_3_VERSION, "ALL"));
    assert_true(is_taken(TLS1_2_VERSION, "ECDHE-ECDSA-AES128-GCM-SHA256"));
    assert_true(is_taken(TLS1_2_VERSION, "ECDHE-ECDSA-CHACHA20-POLY1305"));
    assert_false(is_taken(TLS1_2_VERSION, "ECDHE-ECDSA-AES128-SHA256")); /* no AEAD */
    assert_false(is_taken(TLS1_2_VERSION, "ECDHE-ECDSA-AES256-SHA"));
    assert_false(is_taken(TLS1_2_VERSION, "AES128-GCM-SHA256")); /* no ECDHE */
}

/* Of TLS 1.2: later ones have none. */
static void test_no_renegotiation(void **state)
{
    (void)state;
    start_without_limits();
    int fd;
    SSL *ssl = offer(TLS1_2_VERSION, "ALL", &fd);
    assert_non_null(ssl);
    assert_int_equal(SSL_renegotiate(ssl), 1);
    assert_int_not_equal(SSL_do_handshake(ssl), 1);
    SSL_free(ssl);
    close(fd);
}

/* --- what is no TLS --------------------------------------------------------------------------- */

static void test_plain_http_is_told(void **state)
{
    (void)state;
    start_without_limits();
    struct wire w = wire_open_plain(port);
    wire_print(&w, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    struct wire_reply r;
    wire_read(&w, false, &r);
    assert_int_equal(r.status, 400);
    assert_non_null(strstr(buf_str(&r.body), "use https://"));
    wire_reply_done(&r);
    assert_false(wire_is_open(&w));
    wire_close(&w);
}

static void test_broken_handshakes(void **state)
{
    (void)state;
    start_without_limits();
    metric_t *failed = metric_get(M_tls_handshakes_failed_total, NULL);
    uint64_t before = metric_value(failed);
    struct wire w = wire_open_plain(port);
    static const char no_hello[] = "\x16\x03\x01\0\x10 sixteen bytes..";
    wire_send(&w, no_hello, sizeof no_hello - 1);
    assert_true(wire_is_open(&w)); /* an alert, … */
    assert_int_equal(w.in.data[0], 21);
    w.in.len = 0;
    assert_false(wire_is_open(&w)); /* … and the end */
    wire_close(&w);
    assert_int_equal(metric_value(failed) - before, 1);
}

/* --- limits ----------------------------------------------------------------------------------- */

static const char record_begins[] = "\x16\x03\x01"; /* and never ends */

static void test_a_handshake_has_its_time(void **state)
{
    (void)state;
    start((struct limits){.connections = MANY, .handshakes = MANY, .handshake_ms = 200});
    struct wire stops = wire_open_plain(port), other = wire_open(port);
    wire_print(&stops, "%s", record_begins);
    assert_false(wire_is_open(&stops));
    get_hello(&other); /* it has none any more */
    wire_close(&stops);
    wire_close(&other);
}

/* Whoever has a slot and stops holds up others for a second at most. */
static void test_slots_for_handshakes(void **state)
{
    (void)state;
    start((struct limits){.connections = MANY, .handshakes = 2, .handshake_ms = 3600 * 1000});
    struct wire stop[2] = {wire_open_plain(port), wire_open_plain(port)};
    for (int i = 0; i < 2; i++)
        wire_print(&stop[i], "%s", record_begins);
    for (int i = 0; i < 3; i++) {
        struct wire next = wire_open(port);
        get_hello(&next);
        wire_close(&next);
    }
    for (int i = 0; i < 2; i++) {
        assert_false(wire_is_open(&stop[i]));
        wire_close(&stop[i]);
    }
}

/* A connection too many gets an alert: none is in the middle of a request, but all are busy. */
static void test_connections_of_one_address(void **state)
{
    (void)state;
    enum { MAX = 20, ONE_ADDRESS = 15 };
    start((struct limits){.connections = MAX, .handshakes = MANY});
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

/* Those that stop in the handshake are silent ones of a full listener: they give way. */
static void test_handshakes_give_way(void **state)
{
    (void)state;
    enum { MAX = 20 };
    start((struct limits){.connections = MAX, .handshakes = MANY});
    struct wire stop[MAX];
    wire_speaks_tls = false;
    for (int i = 0; i < MAX; i++) {
        stop[i] = wire_open_from(port, (uint32_t)(INADDR_LOOPBACK + 1 + i));
        wire_print(&stop[i], "%s", record_begins);
    }
    wire_speaks_tls = true;
    bool served = false;
    for (uint64_t end = clock_ms() + 20000; !served && clock_ms() < end;) {
        struct wire w = wire_open(port);
        send_text(&w, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
        served = wire_is_open(&w) && strncmp(w.in.data, "HTTP/1.1 200", 12) == 0;
        wire_close(&w);
    }
    assert_true(served);
    for (int i = 0; i < MAX; i++)
        wire_close(&stop[i]);
}

/* --- requests --------------------------------------------------------------------------------- */

static void cork(struct wire *w, int on)
{
    assert_int_equal(setsockopt(w->fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on), 0);
}

/* One packet has a request and what ends the session. */
static struct wire end_with_a_request(void (*end)(struct wire *w))
{
    start_without_limits();
    struct wire w = wire_open(port);
    get_hello(&w);
    cork(&w, 1);
    send_text(&w, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    end(&w);
    cork(&w, 0);
    return w;
}

static void close_notify(struct wire *w)
{
    assert_true(SSL_shutdown(w->tls) >= 0);
}

static void forged_record(struct wire *w)
{
    static const char record[5 + 32] = {0x17, 3, 3, 0, 32};
    assert_int_equal(send(w->fd, record, sizeof record, 0), sizeof record);
}

/* The reply comes, and then the end, without waiting for another byte. */
static void test_the_end_comes_with_a_request(void **state)
{
    (void)state;
    struct wire w = end_with_a_request(close_notify);
    struct wire_reply r;
    wire_read(&w, false, &r);
    assert_int_equal(r.status, 200);
    wire_reply_done(&r);
    assert_false(wire_is_open(&w));
    wire_close(&w);
}

/* The session is broken, and cannot seal the reply either. */
static void test_a_forgery_comes_with_a_request(void **state)
{
    (void)state;
    struct wire w = end_with_a_request(forged_record);
    assert_false(wire_is_open(&w));
    wire_close(&w);
}

/* As many as a client likes, but not without data between them. */
static void test_new_keys(void **state)
{
    (void)state;
    start_without_limits();
    struct wire w = wire_open(port);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(SSL_key_update(w.tls, SSL_KEY_UPDATE_REQUESTED), 1);
        get_hello(&w);
    }
    struct wire beside = wire_open(port);
    for (bool open = true; open;)
        open = SSL_key_update(w.tls, SSL_KEY_UPDATE_REQUESTED) == 1 && SSL_do_handshake(w.tls) == 1;
    get_hello(&beside);
    wire_close(&w);
    wire_close(&beside);
}

/* With the last byte of what is no whole record. */
static void test_an_end_in_the_middle_of_a_record(void **state)
{
    (void)state;
    start_without_limits();
    static const char part[] = {0x17, 3, 3, 0, 32, 1, 2, 3};
    struct wire w = wire_open(port);
    get_hello(&w);
    cork(&w, 1);
    assert_int_equal(send(w.fd, part, sizeof part, 0), sizeof part);
    assert_int_equal(shutdown(w.fd, SHUT_WR), 0);
    assert_false(wire_is_open(&w));
    wire_close(&w);
    w = wire_open_plain(port);
    cork(&w, 1);
    wire_print(&w, "%s", record_begins);
    assert_int_equal(shutdown(w.fd, SHUT_WR), 0);
    assert_false(wire_is_open(&w));
    wire_close(&w);
}

/* A record's parts come as packets of their own. */
static void test_a_record_in_pieces(void **state)
{
    (void)state;
    start_without_limits();
    struct wire w = wire_open(port);
    struct buf sealed = BUF_INIT;
    BIO *memory = BIO_new(BIO_s_mem()), *socket = SSL_get_wbio(w.tls);
    assert_true(memory != NULL && BIO_up_ref(socket) == 1);
    SSL_set0_wbio(w.tls, memory);
    send_text(&w, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    char *data;
    long len = BIO_get_mem_data(memory, &data);
    assert_true(len > 0);
    buf_append(&sealed, data, (size_t)len);
    SSL_set0_wbio(w.tls, socket);
    int on = 1;
    assert_int_equal(setsockopt(w.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
    for (size_t i = 0; i < sealed.len; i++)
        assert_int_equal(send(w.fd, sealed.data + i, 1, 0), 1);
    struct wire_reply r;
    wire_read(&w, false, &r);
    assert_int_equal(r.status, 200);
    wire_reply_done(&r);
    buf_done(&sealed);
    wire_close(&w);
}

#define TEST(name) cmocka_unit_test_teardown(name, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_versions_and_ciphers),
        TEST(test_no_renegotiation),
        TEST(test_plain_http_is_told),
        TEST(test_broken_handshakes),
        TEST(test_a_handshake_has_its_time),
        TEST(test_slots_for_handshakes),
        TEST(test_connections_of_one_address),
        TEST(test_handshakes_give_way),
        TEST(test_the_end_comes_with_a_request),
        TEST(test_a_forgery_comes_with_a_request),
        TEST(test_a_record_in_pieces),
        TEST(test_new_keys),
        TEST(test_an_end_in_the_middle_of_a_record),
    };
    signal(SIGPIPE, SIG_IGN); /* OpenSSL's client answers an alert, also where it cannot */
    tls = certificate_tls();
    wire_speaks_tls = true;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tls_free(tls);
    return failed;
}
