/* A server whose handler reads a node, which is a script of the test (peer.h): for tests of
 * net/direct. */
#pragma once

#include "common/mem.h"
#include "io/loop.h"
#include "net/client/client.h"
#include "net/direct/direct.h"
#include "net/testing/peer.h"
#include "net/testing/server_fixture.h"

enum { STALL_MS = 1000, KEPT_MAX = 4 };

static struct {
    struct loop *loop;
    struct http_client *client;
    struct direct_reader *reader;
    struct peer node;
} dx;

/* --- the handler ------------------------------------------------------------------------------ */

struct reading {
    struct http_request *req;
    char *url;
};

static inline void took_head(void *arg, const struct http_head *head)
{
    const struct reading *r = arg;
    const char *word = head->header(head, "Word");
    if (word != NULL)
        http_reply_header(r->req, "Word", word);
}

static inline void read_done(void *arg, struct http_result *result, struct direct *d)
{
    const struct reading *r = arg;
    struct error err = ERROR_INIT;
    if (d != NULL)
        direct_reply(d, result->status);
    else if (http_result_error(result, "the node", &err) != 0)
        http_reply_error(r->req, &err);
    else
        fail_msg("a success without a body");
}

static inline void read_elsewhere(void *arg)
{
    const struct reading *r = arg;
    struct error err;
    error_set(&err, E_NOT_FOUND, "no address is known");
    http_reply_error(r->req, &err);
}

static inline void start(void *arg)
{
    struct reading *r = arg;
    static const char *const headers[] = {"Question: why", "Empty;", NULL};
    const struct direct_call call = {.method = http_method(r->req),
                                     .url = r->url,
                                     .headers = headers,
                                     .head = took_head,
                                     .done = read_done,
                                     .elsewhere = read_elsewhere,
                                     .arg = r};
    assert_true(direct_takes(r->req, r->url));
    direct_start(dx.reader, r->req, &call);
}

static inline void read_node(struct http_request *req)
{
    struct reading *r = arena_alloc(http_arena(req), sizeof *r);
    const char *host = http_query(req, "host");
    *r = (struct reading){req, arena_printf(http_arena(req), "http://%s:%u/at?a=b",
                                            host != NULL ? host : "127.0.0.1", dx.node.port)};
    fixture_count_end(req);
    if (http_query(req, "later") == NULL)
        start(r);
    else
        assert_int_equal(pool_submit(fx.pool, start, r, NULL), 0);
}

static const struct http_route routes[] = {
    {.name = "read",
     .method = HTTP_GET,
     .pattern = "/read",
     .nets = NET_PUBLIC,
     .right = RIGHT_READ,
     .begin = read_node,
     .query = HTTP_PARAMETERS({"later", "true"}, {"host", "name"})},
    {.name = "head",
     .right = RIGHT_READ,
     .method = HTTP_HEAD,
     .pattern = "/read",
     .nets = NET_PUBLIC,
     .begin = read_node},
    {.name = NULL},
};

static inline int direct_setup_keeping(size_t kept_max)
{
    const struct http_client_config config = {.connect_timeout_ms = 2000,
                                              .stall_timeout_ms = STALL_MS};
    assert_int_equal(loop_new("client", &dx.loop, NULL), 0);
    assert_int_equal(http_client_new(dx.loop, &config, &dx.client, NULL), 0);
    dx.reader =
        direct_reader_new(&(struct direct_config){.client = dx.client, .kept_max = kept_max});
    struct http_server_config server = fixture_config(NET_PUBLIC);
    server.threads = 1;
    fixture_start(server, routes);
    return 0;
}

static inline int direct_setup(void **state)
{
    (void)state;
    return direct_setup_keeping(KEPT_MAX);
}

static inline int direct_teardown(void **state)
{
    fixture_stop(state);
    direct_reader_free(dx.reader);
    http_client_free(dx.client);
    loop_free(dx.loop);
    return 0;
}

/* --- the node --------------------------------------------------------------------------------- */

static inline bool send_pattern(struct peer_conn *c, size_t from, size_t len)
{
    _cleanup_free_ char *data = xmalloc(len);
    for (size_t i = 0; i < len; i++)
        data[i] = pattern(from + i);
    return peer_send(c, data, len);
}

static inline bool reply_pattern(struct peer_conn *c, size_t len)
{
    return peer_read_request(c) &&
           peer_print(c, "HTTP/1.1 200 OK\r\nWord: yes\r\nContent-Length: %zu\r\n\r\n", len) &&
           send_pattern(c, 0, len);
}

static inline void get_pattern(struct wire *w, const char *target, size_t len)
{
    struct wire_reply r;
    wire_get(w, "GET", target, &r);
    assert_int_equal(r.status, 200);
    assert_true(r.complete);
    assert_string_equal(wire_header(&r, "Word"), "yes");
    assert_pattern(&r.body, 0, len);
    wire_reply_done(&r);
}

static inline void get_error(struct wire *w, const char *code, const char *words)
{
    struct wire_reply r;
    wire_get(w, "GET", "/read", &r);
    assert_true(r.complete);
    wire_assert_code(&r, code);
    if (strstr(r.body.data, words) == NULL)
        fail_msg("'%s' is not in %s", words, r.body.data);
    wire_reply_done(&r);
}

static inline void get_cut(struct wire *w, size_t least)
{
    struct wire_reply r;
    wire_get(w, "GET", "/read", &r);
    assert_int_equal(r.status, 200);
    assert_false(r.complete);
    assert_true(r.body.len >= least);
    assert_pattern(&r.body, 0, r.body.len);
    wire_reply_done(&r);
}

#define read_test(fn) cmocka_unit_test_setup_teardown(fn, direct_setup, direct_teardown)
