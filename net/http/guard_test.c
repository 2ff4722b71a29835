/* A server with a guard, over real connections: it is asked before anything is told of parameters,
 * paths or bodies, and each request once. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "net/http/server.h"
#include "net/testing/wire.h"

static atomic_uint asked, served, ended;
static struct http_outcome last_outcome; /* valid for who has seen `ended` grow */

static void hello_begin(struct http_request *req)
{
    served++;
    const char *caller = http_caller(req);
    http_reply_data(req, 200, "text/plain", caller, strlen(caller));
}

static const struct http_route routes[] = {
    {.name = "get",
     .method = HTTP_GET,
     .pattern = "/things/{thing}",
     .nets = NET_PUBLIC,
     .right = RIGHT_READ,
     .begin = hello_begin,
     .query = HTTP_PARAMETERS({"part", "number"})},
    {.name = "put",
     .method = HTTP_PUT,
     .pattern = "/things/{thing}",
     .nets = NET_PUBLIC,
     .right = RIGHT_WRITE,
     .begin = hello_begin},
    {.name = NULL},
};
static const struct http_route *const tables[] = {routes, NULL};

/* Who says a name is let in by it; the guard sees what the handler would. */
static int ask(void *ctx, struct http_request *req, struct error *err)
{
    (void)ctx;
    asked++;
    const char *name = http_header(req, "Authorization");
    if (name == NULL)
        return error_set(err, E_UNAUTHORIZED, "no name");
    if (strcmp(name, "part") == 0)
        name = http_query(req, "part");
    else if (strcmp(name, "thing") == 0)
        name = http_path_param(req, "thing");
    http_set_caller(req, arena_strdup(http_arena(req), name));
    return 0;
}

static void note_end(void *ctx, struct http_request *req)
{
    (void)ctx;
    http_outcome(req, &last_outcome);
    ended++;
}

static struct http_server *server;
static struct wire wire;

static int setup(void **state)
{
    (void)state;
    static const struct http_guard guard = {.open = ask, .asks_rights = true};
    static const struct http_witness witness = {.ended = note_end};
    const struct http_server_config config = {.node = "n1",
                                              .address = "127.0.0.1",
                                              .net = NET_PUBLIC,
                                              .threads = 1,
                                              .connections_max = 16,
                                              .connection_memory = 32768,
                                              .idle_timeout_s = 60,
                                              .routes = tables,
                                              .guard = &guard,
                                              .witness = &witness};
    asked = served = ended = 0;
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

static void get(const char *target, const char *name)
{
    wire_print(&wire, "GET %s HTTP/1.1\r\nHost: x\r\n%s%s\r\n\r\n", target,
               name[0] != '\0' ? "Authorization: " : "X: y", name);
}

static void expect_hello(const char *caller)
{
    struct wire_reply r;
    wire_read(&wire, false, &r);
    assert_int_equal(r.status, 200);
    assert_string_equal(buf_str(&r.body), caller);
    wire_reply_done(&r);
}

static void test_a_caller_is_let_in_and_known(void **state)
{
    (void)state;
    get("/things/a%20b?part=7", "anna");
    expect_hello("anna");
    get("/things/a%20b?part=7", "part");
    expect_hello("7");
    get("/things/a%20b?part=7", "thing");
    expect_hello("a b");
    assert_int_equal(asked, 3);
    assert_int_equal(served, 3);
}

static void test_a_stranger_learns_nothing(void **state)
{
    (void)state;
    static const char *const targets[] = {"/things/a", "/things/%zz", "/things/a?nothing=1",
                                          "/things/a?part=%zz", "/nowhere"};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        get(targets[i], "");
        wire_read_error(&wire, 401, "unauthorized");
    }
    wire_print(&wire, "DELETE /things/a HTTP/1.1\r\nHost: x\r\n\r\n");
    wire_read_error(&wire, 401, "unauthorized");
    assert_int_equal(asked, 6);
    assert_int_equal(served, 0);
}

static void test_a_caller_learns_what_is_wrong(void **state)
{
    (void)state;
    get("/things/%zz", "anna");
    wire_read_error(&wire, 400, "invalid_argument");
    get("/things/a?nothing=1", "anna");
    wire_read_error(&wire, 400, "invalid_argument");
    get("/nowhere", "anna");
    wire_read_error(&wire, 404, "no_such_route");
    assert_int_equal(asked, 3);
    assert_int_equal(served, 0);
}

static void test_a_body_is_not_waited_for(void **state)
{
    (void)state;
    wire_print(&wire, "PUT /things/a HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n"
                      "Expect: 100-continue\r\n\r\n");
    wire_read_error(&wire, 401, "unauthorized");
    assert_int_equal(served, 0);
}

/* A witness is told after the reply was sent. */
static void test_each_end_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *target, *name, *code;
        unsigned status;
        bool let_in;
    } rows[] = {{"/things/a", "anna", NULL, 200, true},
                {"/things/a", "", "unauthorized", 401, false},
                {"/nowhere", "anna", "no_such_route", 404, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct wire_reply r;
        get(rows[i].target, rows[i].name);
        wire_read(&wire, false, &r);
        while (ended != i + 1)
            sched_yield();
        assert_int_equal(last_outcome.status, rows[i].status);
        assert_int_equal(last_outcome.let_in, rows[i].let_in);
        assert_true(last_outcome.bytes_out > 0);
        if (rows[i].code == NULL)
            assert_null(last_outcome.code);
        else
            assert_string_equal(last_outcome.code, rows[i].code);
        wire_reply_done(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_caller_is_let_in_and_known, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_stranger_learns_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_caller_learns_what_is_wrong, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_body_is_not_waited_for, setup, teardown),
        cmocka_unit_test_setup_teardown(test_each_end_is_told, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
