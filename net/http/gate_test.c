/* A server that asks for proof and a client that signs, over real connections: what passes, what is
 * refused, and that sessions are opened and renewed by themselves. */
#include "net/http/gate.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/mem.h"
#include "io/loop.h"
#include "net/auth/auth.h"
#include "net/client/client.h"
#include "net/http/server.h"
#include "net/http/server_state.h"
#include "net/http/session_routes.h"
#include "net/testing/wire.h"

#define KEY "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
#define OTHER_KEY "oooooooooooooooooooooooooooooooooooooooooooo"

enum {
    CONNECTIONS_MAX = 1200,
    STREAM_BYTES = 300000,
    MANY = 200,
    PATIENCE_MS = 60000,
    PORT_FIRST = 5000,
    PORTS = 4000,
};

/* --- the server ------------------------------------------------------------------------------- */

static atomic_uint handled;

static void echo(struct http_request *req, const char *data, size_t len)
{
    handled++;
    http_reply_data(req, 200, "text/plain", data, len);
}

static void echo_begin(struct http_request *req)
{
    http_collect_body(req, 1 << 20, echo);
}

static void hello_begin(struct http_request *req)
{
    http_reply_data(req, 200, "text/plain", "hello", 5);
}

static void actor_begin(struct http_request *req)
{
    const struct http_actor *actor = http_actor(req);
    char *text =
        arena_printf(http_arena(req), "%s %s", actor->id != NULL ? actor->id : "-", actor->name);
    http_reply_data(req, 200, "text/plain", text, strlen(text));
}

static const struct http_route routes[] = {
    {.name = "echo",
     .method = HTTP_POST,
     .pattern = "/echo",
     .nets = NET_ALL,
     .right = RIGHT_NONE,
     .begin = echo_begin},
    {.name = "order",
     .method = HTTP_POST,
     .pattern = "/order",
     .nets = NET_ALL,
     .right = RIGHT_NONE,
     .fenced = true,
     .begin = echo_begin},
    {.name = "join",
     .method = HTTP_POST,
     .pattern = "/join",
     .nets = NET_ALL,
     .right = RIGHT_NONE,
     .any_cluster = true,
     .begin = echo_begin},
    {.name = "actor",
     .method = HTTP_GET,
     .pattern = "/actor",
     .nets = NET_ALL,
     .right = RIGHT_NONE,
     .begin = actor_begin},
    {.name = "open",
     .method = HTTP_GET,
     .pattern = "/open",
     .nets = NET_ALL,
     .right = RIGHT_NONE,
     .open = true,
     .begin = hello_begin},
    {.name = NULL},
};
static const struct http_route *const tables[] = {routes, session_routes, NULL};

static void stamp_of(void *ctx, struct auth_stamp *out)
{
    *out = *(const struct auth_stamp *)ctx;
}

static struct auth *auth_of(const char *key, struct auth_stamp *stamp)
{
    char path[] = "/tmp/dfc-gate-test-XXXXXX";
    int fd = mkstemp(path); /* 0600 */
    assert_true(fd >= 0);
    assert_int_equal(write(fd, key, strlen(key)), (ssize_t)strlen(key));
    close(fd);
    const struct auth_config config = {.key_file = key[0] != '\0' ? path : "",
                                       .node = "n",
                                       .boot = "boot",
                                       .stamp = stamp_of,
                                       .ctx = stamp};
    struct auth *a;
    assert_int_equal(auth_new(&config, &a, NULL), 0);
    unlink(path);
    return a;
}

static struct {
    struct auth_stamp here, there; /* what the client's node has seen, and the server's */
    struct auth *server_auth, *client_auth;
    struct http_server *server;
    uint16_t port;
    struct loop *loop;
    struct http_client *client;
} fx;

/* The port stays the server's over its restarts: below those that outgoing connections take. */
static int try_server(const struct http_server_config *config, uint16_t port, struct error *err)
{
    struct http_server_config c = *config;
    c.port = port;
    return http_server_new(&c, &fx.server, err);
}

static void server_begin(const char *key, enum http_net net)
{
    fx.server_auth = auth_of(key, &fx.there);
    const struct http_server_config config = {.node = "n",
                                              .address = "127.0.0.1",
                                              .net = net,
                                              .threads = 2,
                                              .connections_max = CONNECTIONS_MAX,
                                              .connection_memory = 32768,
                                              .idle_timeout_s = 60,
                                              .routes = tables,
                                              .auth = fx.server_auth};
    struct error err = ERROR_INIT;
    int code = fx.port != 0 ? try_server(&config, fx.port, &err) : E_NET;
    for (unsigned i = 0; fx.port == 0 && code != 0 && i < PORTS; i++)
        code = try_server(&config, (uint16_t)(PORT_FIRST + (getpid() + i) % PORTS), &err);
    if (code != 0)
        fail_msg("%s", err.message);
    fx.port = http_server_port(fx.server);
}

static void server_end(void)
{
    http_server_free(fx.server);
    auth_free(fx.server_auth);
}

static void client_begin(const char *key)
{
    fx.client_auth = auth_of(key, &fx.here);
    const struct http_client_config config = {
        .connect_timeout_ms = PATIENCE_MS, .stall_timeout_ms = PATIENCE_MS, .auth = fx.client_auth};
    assert_int_equal(loop_new("client", &fx.loop, NULL), 0);
    assert_int_equal(http_client_new(fx.loop, &config, &fx.client, NULL), 0);
}

static void client_end(void)
{
    http_client_free(fx.client);
    loop_free(fx.loop);
    auth_free(fx.client_auth);
}

static int setup(void **state)
{
    (void)state;
    memset(&fx, 0, sizeof fx);
    handled = 0;
    server_begin(KEY, NET_CONTROL);
    client_begin(KEY);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    client_end();
    server_end();
    return 0;
}

static char *url_of(const char *path)
{
    return xprintf("http://127.0.0.1:%u%s", fx.port, path);
}

static int post(const char *path, const char *body, struct error *err)
{
    _cleanup_free_ char *url = url_of(path);
    _cleanup_(http_result_done)
    struct http_result r = {0};
    const struct http_call call = {
        .method = HTTP_POST, .url = url, .node = "n", .body = body, .body_len = strlen(body)};
    int code = http_call_wait(fx.client, &call, &r, err);
    if (code == 0)
        assert_string_equal(buf_str(&r.body), body);
    return code;
}

static void need_post(const char *path, const char *body)
{
    struct error err = ERROR_INIT;
    if (post(path, body, &err) != 0)
        fail_msg("%s", err.message);
}

/* --- signed and not --------------------------------------------------------------------------- */

static void test_signed_calls_pass(void **state)
{
    (void)state;
    need_post("/echo", "one");
    need_post("/echo?a=b%20c&d", "two");
    need_post("/echo?", "");
    assert_int_equal(handled, 3);
}

/* What a row says in the end: for whom the call is. */
static void test_a_signed_call_says_for_whom_it_is(void **state)
{
    (void)state;
    static const struct {
        const char *header, *id, *name;
    } rows[] = {{"Dfc-User: 0f ann", "0f", "ann"},
                {"X: y", NULL, HTTP_ACTOR_KEY},
                {"Dfc-User: root", NULL, HTTP_ACTOR_KEY}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *const headers[] = {rows[i].header, NULL};
        _cleanup_free_ char *url = url_of("/actor");
        _cleanup_(http_result_done)
        struct http_result r = {0};
        const struct http_call call = {
            .method = HTTP_GET, .url = url, .node = "n", .headers = headers};
        assert_int_equal(http_call_wait(fx.client, &call, &r, NULL), 0);
        _cleanup_free_ char *wanted =
            xprintf("%s %s", rows[i].id != NULL ? rows[i].id : "-", rows[i].name);
        assert_string_equal(buf_str(&r.body), wanted);
    }
}

static void test_unsigned_calls_do_not(void **state)
{
    (void)state;
    static const struct {
        const char *method, *target;
        int status;
    } rows[] = {{"GET", "/open", 200},
                {"GET", "/echo", 401},
                {"POST", "/echo", 401},
                {"GET", "/none", 401},
                {"DELETE", "/open", 401}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wire w = wire_open(fx.port);
        struct wire_reply r;
        wire_get(&w, rows[i].method, rows[i].target, &r);
        assert_int_equal(r.status, rows[i].status);
        const char *challenge = wire_header(&r, "WWW-Authenticate");
        assert_string_equal(challenge != NULL ? challenge : "",
                            rows[i].status == 401 ? "Dfc error=\"missing\"" : "");
        assert_string_equal(wire_header(&r, "Connection"), "close"); /* it holds none */
        wire_reply_done(&r);
        wire_close(&w);
    }
    assert_int_equal(handled, 0);
}

static void test_the_public_listener_asks_nobody(void **state)
{
    (void)state;
    server_end();
    fx.port = 0;
    server_begin(KEY, NET_PUBLIC);
    struct wire w = wire_open(fx.port);
    struct wire_reply r;
    wire_get(&w, "POST", "/echo", &r);
    assert_int_equal(r.status, 200);
    wire_reply_done(&r);
    wire_print(&w, "GET /actor HTTP/1.1\r\nHost: x\r\nDfc-User: 0f root\r\n\r\n");
    wire_read(&w, false, &r); /* nobody is believed, either */
    assert_string_equal(buf_str(&r.body), "- " HTTP_ACTOR_ANYBODY);
    wire_reply_done(&r);
    wire_close(&w);
}

/* Silent connections beyond a quarter end long before their time, whichever of them are the oldest
 * of a thread; nodes get in beside them. */
static void test_silent_strangers_do_not_keep_nodes_out(void **state)
{
    (void)state;
    enum { SILENT = CONNECTIONS_MAX / SERVER_SILENT_SHARE + 8 };
    static struct wire w[SILENT];
    static struct pollfd ends[SILENT];
    for (int i = 0; i < SILENT; i++) {
        w[i] = wire_open_from(fx.port, INADDR_LOOPBACK + 1 + (unsigned)i % 2);
        ends[i] = (struct pollfd){.fd = w[i].fd, .events = POLLIN};
    }
    need_post("/echo", "one");
    assert_true(poll(ends, SILENT, 30000) > 0); /* alone each may be silent for a minute */
    need_post("/echo", "two");
    for (int i = 0; i < SILENT; i++)
        wire_close(&w[i]);
}

/* --- sessions --------------------------------------------------------------------------------- */

static void test_a_server_that_began_anew_is_greeted_again(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        need_post("/echo", "before");
        server_end();
        server_begin(KEY, NET_CONTROL);
        need_post("/echo", "after");
    }
    assert_int_equal(handled, 6);
}

static void count(void *arg, struct http_result *r)
{
    atomic_uint *ended = arg;
    if (http_result_error(r, "url", NULL) == 0)
        ended[0]++;
    ended[1]++;
}

static int get_of(const char *node, struct http_result *r, struct error *err)
{
    _cleanup_free_ char *url = url_of("/actor");
    const struct http_call call = {.method = HTTP_GET, .url = url, .node = node};
    return http_call_wait(fx.client, &call, r, err);
}

/* Whatever the address, and also where a session with the node that answers is open. */
static void test_only_the_node_that_is_meant_gets_the_call(void **state)
{
    (void)state;
    static const char *const calls[] = {"other", "n", "other", HTTP_ANY_NODE, "other", "n"};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        struct http_result r = {0};
        struct error err = ERROR_INIT;
        bool meant = strcmp(calls[i], "other") != 0;
        assert_int_equal(get_of(calls[i], &r, &err), meant ? 0 : E_NET);
        assert_true(meant || r.not_sent);
        assert_true(meant || strstr(err.message, "node 'n' answers at this address, and not node "
                                                 "'other'") != NULL);
        http_result_done(&r);
    }
}

/* All of them wait for the one session, then overtake one another. */
static void test_many_at_once(void **state)
{
    (void)state;
    _cleanup_free_ char *url = url_of("/echo");
    atomic_uint ended[2] = {0};
    for (unsigned i = 0; i < MANY; i++) {
        const struct http_call call = {
            .method = HTTP_POST, .url = url, .node = "n", .body = "x", .body_len = 1};
        http_call_start(fx.client, &call, count, ended);
    }
    while (ended[1] < MANY)
        usleep(1000);
    assert_int_equal(ended[0], MANY);
}

static void need_stream(void)
{
    _cleanup_free_ char *url = url_of("/echo");
    _cleanup_free_ char *bytes = xmalloc(STREAM_BYTES);
    memset(bytes, 'b', STREAM_BYTES);
    struct bpipe *pipe = bpipe_new(2 * STREAM_BYTES);
    assert_int_equal(bpipe_write(pipe, bytes, STREAM_BYTES, NULL), 0);
    bpipe_finish(pipe, NULL);
    const struct http_call call = {.method = HTTP_POST,
                                   .url = url,
                                   .node = "n",
                                   .upload = pipe,
                                   .upload_length = STREAM_BYTES};
    struct http_result r = {0};
    struct error err = ERROR_INIT;
    if (http_call_wait(fx.client, &call, &r, &err) != 0)
        fail_msg("%s", err.message);
    assert_int_equal(r.body.len, STREAM_BYTES);
    http_result_done(&r);
    bpipe_unref(pipe);
}

static void test_a_stream_opens_its_session(void **state)
{
    (void)state;
    need_stream();
}

/* However lately it was heard. */
static void test_a_stream_to_a_server_that_began_anew(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        need_post("/echo", "before");
        need_stream();
        server_end();
        server_begin(KEY, NET_CONTROL);
        need_stream();
    }
}

static void test_another_key_is_refused_in_words(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    client_end();
    client_begin(OTHER_KEY);
    assert_int_equal(post("/echo", "x", &err), E_UNAUTHORIZED);
    assert_non_null(strstr(err.message, "another cluster key"));
    assert_int_equal(handled, 0);
}

static void test_a_server_without_a_key_is_no_node(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    server_end();
    server_begin("", NET_CONTROL);
    assert_int_equal(post("/echo", "x", &err), E_UNAUTHORIZED);
    assert_non_null(strstr(err.message, "without a cluster key"));
}

static void test_a_public_address_is_named_as_the_mistake(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    server_end();
    server_begin(KEY, NET_PUBLIC);
    assert_int_equal(post("/echo", "x", &err), E_UNAUTHORIZED);
    assert_non_null(strstr(err.message, "public address"));
    assert_int_equal(handled, 0);
}

static void test_without_keys_nothing_is_asked(void **state)
{
    (void)state;
    client_end();
    client_begin("");
    server_end();
    server_begin("", NET_CONTROL);
    need_post("/echo", "x");
}

/* --- calls that end while they wait ----------------------------------------------------------- */

/* A listener that takes connections and says nothing. */
static int silent_port(int *fd)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    *fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(*fd, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(*fd, 16), 0);
    assert_int_equal(getsockname(*fd, (struct sockaddr *)&at, &len), 0);
    return ntohs(at.sin_port);
}

static void test_a_call_that_waits_ends_in_its_time(void **state)
{
    (void)state;
    int fd;
    _cleanup_free_ char *url = xprintf("http://127.0.0.1:%d/x", silent_port(&fd));
    struct http_result r = {0};
    const struct http_call call = {
        .method = HTTP_GET, .url = url, .node = "n", .total_timeout_ms = 50};
    assert_int_equal(http_call_wait(fx.client, &call, &r, NULL), E_TIMEOUT);
    assert_true(r.not_sent);
    http_result_done(&r);
    close(fd);
}

static void test_a_call_that_waits_can_be_cancelled(void **state)
{
    (void)state;
    int fd;
    _cleanup_free_ char *url = xprintf("http://127.0.0.1:%d/x", silent_port(&fd));
    atomic_uint ended[2] = {0};
    const struct http_call call = {.method = HTTP_GET, .url = url, .node = "n"};
    http_call_start(fx.client, &call, count, ended); /* ended by the client's end */
    uint64_t number = http_call_start(fx.client, &call, count, ended);
    http_call_cancel(fx.client, number);
    while (ended[1] < 1)
        usleep(1000);
    client_end();
    assert_int_equal(ended[1], 2);
    assert_int_equal(ended[0], 0);
    close(fd);
    client_begin(KEY);
}

/* --- the documents that the sender has -------------------------------------------------------- */

static void test_clusters_and_terms(void **state)
{
    (void)state;
    fx.here = (struct auth_stamp){.cluster = "c-1", .term = 3, .version = 7};
    need_post("/order", "to one that has seen nothing");
    fx.there = (struct auth_stamp){.cluster = "c-1", .term = 3, .version = 9};
    need_post("/order", "of the same term");
    fx.there.term = 4;
    assert_int_equal(post("/order", "of a term that is over", NULL), E_STALE_MAP);
    need_post("/echo", "no order");
    snprintf(fx.there.cluster, sizeof fx.there.cluster, "c-2");
    assert_int_equal(post("/echo", "of another cluster", NULL), E_WRONG_CLUSTER);
    need_post("/join", "which looks itself");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_signed_calls_pass, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unsigned_calls_do_not, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_signed_call_says_for_whom_it_is, setup, teardown),
        cmocka_unit_test_setup_teardown(test_silent_strangers_do_not_keep_nodes_out, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_the_public_listener_asks_nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_server_that_began_anew_is_greeted_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_only_the_node_that_is_meant_gets_the_call, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_many_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_stream_opens_its_session, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_stream_to_a_server_that_began_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another_key_is_refused_in_words, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_server_without_a_key_is_no_node, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_public_address_is_named_as_the_mistake, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_without_keys_nothing_is_asked, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_call_that_waits_ends_in_its_time, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_call_that_waits_can_be_cancelled, setup, teardown),
        cmocka_unit_test_setup_teardown(test_clusters_and_terms, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
