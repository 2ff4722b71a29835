/* A server with a route that says hello and one that takes bodies, and what tests of heads, limits
 * and places ask of it over bare sockets (net/testing/wire.h). */
#pragma once

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/clock.h"
#include "net/http/server.h"
#include "net/testing/wire.h"

static struct http_server *server;
static uint16_t port;
static atomic_uint begun; /* PUTs, … */
static atomic_uint cut;   /* … those that were cut, … */
static atomic_uint ended; /* … and requests whose hook has run */

static inline void on_end(void *arg)
{
    (void)arg;
    ended++;
}

static inline void hello(struct http_request *req)
{
    http_reply_data(req, 200, "text/plain", "hello", 5);
}

static inline size_t take_all(struct http_request *req, void *ctx, const char *data, size_t len)
{
    (void)req;
    (void)ctx;
    (void)data;
    return len;
}

static inline void body_end(struct http_request *req, void *ctx)
{
    (void)ctx;
    http_reply_empty(req, 204);
}

static inline void body_cut(struct http_request *req, void *ctx)
{
    (void)req;
    (void)ctx;
    cut++;
}

static inline void put(struct http_request *req)
{
    static const struct http_body_ops ops = {.data = take_all, .end = body_end, .cut = body_cut};
    begun++;
    http_on_end(req, on_end, NULL);
    http_take_body(req, &ops, NULL);
}

static inline int stop(void **state)
{
    (void)state;
    http_server_free(server);
    server = NULL;
    return 0;
}

static inline void wait_for(atomic_uint *counter, unsigned value)
{
    for (uint64_t end = clock_ms() + 20000; *counter != value && clock_ms() < end;)
        sched_yield();
    assert_int_equal(*counter, value);
}

static inline void read_hello(struct wire *w)
{
    struct wire_reply r;
    wire_read(w, false, &r);
    assert_int_equal(r.status, 200);
    wire_reply_done(&r);
}

static inline void get_hello(struct wire *w)
{
    wire_print(w, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    read_hello(w);
}

static inline void send_text(struct wire *w, const char *text)
{
    wire_try_send(w, text, strlen(text));
}
