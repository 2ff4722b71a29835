/* A server on a port of its own, and what tests ask of it over bare sockets (wire_testing.h). */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/parse.h"
#include "io/pool.h"
#include "net/http/server.h"
#include "net/testing/certificate.h"
#include "net/testing/wire.h"
#include "net/tls/tls.h"

static struct {
    enum http_layer layer; /* of the servers that are started */
    struct tls *tls;       /* or NULL */
    struct http_server *server;
    struct pool *pool; /* for who answers later */
    uint16_t port;
    atomic_uint ended; /* requests whose hook fixture_count_end() has run */
} fx;

static inline struct http_server_config fixture_config(enum http_net net)
{
    return (struct http_server_config){
        .node = "n1",
        .address = "127.0.0.1",
        .net = net,
        .threads = 2,
        .connections_max = 1000,
        .connection_memory = 32 * 1024,
        .idle_timeout_s = 30,
        .layer = fx.layer,
        .tls = fx.tls,
        .tls_handshakes_max = 256,
    };
}

static inline void fixture_start(struct http_server_config config, const struct http_route *routes)
{
    static const struct http_route *tables[2];
    struct error err = ERROR_INIT;
    tables[0] = routes;
    config.routes = tables;
    fx.ended = 0;
    if (pool_new("worker", 3, 1000, &fx.pool, &err) != 0 ||
        http_server_new(&config, &fx.server, &err) != 0)
        fail_msg("%s", err.message);
    fx.port = http_server_port(fx.server);
}

/* From now on servers and clients speak TLS. */
static inline void fixture_begin_tls(void)
{
    fx.layer = HTTP_LAYER_EPOLL;
    fx.tls = certificate_tls();
    wire_speaks_tls = true;
}

static inline void fixture_end_tls(void)
{
    wire_speaks_tls = false;
    tls_free(steal(fx.tls));
}

static inline int fixture_stop(void **state)
{
    (void)state;
    http_server_free(fx.server);
    pool_free(fx.pool);
    fx.server = NULL;
    return 0;
}

static inline void fixture_on_end(void *arg)
{
    (void)arg;
    fx.ended++;
}

static inline void fixture_count_end(struct http_request *req)
{
    http_on_end(req, fixture_on_end, NULL);
}

static inline uint64_t query_u64(struct http_request *req, const char *name, uint64_t fallback)
{
    uint64_t value = fallback;
    const char *text = http_query(req, name);
    if (text != NULL)
        assert_int_equal(parse_u64(text, &value, NULL), 0);
    return value;
}

/* The bytes of bodies. */
static inline char pattern(uint64_t at)
{
    return (char)('a' + at * 31 / 7 % 26);
}

static inline void assert_pattern(const struct buf *body, uint64_t from, size_t len)
{
    assert_int_equal(body->len, len);
    for (size_t i = 0; i < len; i++) {
        if (body->data[i] != pattern(from + i))
            fail_msg("byte %zu differs", i);
    }
}

static inline void get(struct wire *w, const char *target, int status, const char *body)
{
    struct wire_reply r;
    wire_get(w, "GET", target, &r);
    assert_int_equal(r.status, status);
    assert_true(r.complete);
    if (body != NULL)
        assert_string_equal(r.body.data, body);
    assert_null(wire_header(&r, "Connection"));
    wire_reply_done(&r);
}
