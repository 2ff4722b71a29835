/* A request that another handler carries out: what it sees, and what becomes of its reply. */
#include <fcntl.h>
#include <unistd.h>

#include "net/testing/hello_fixture.h"

#include "common/buf.h"

/* --- the other handler ------------------------------------------------------------------------ */

static void other_get(struct http_request *req)
{
    assert_int_equal(http_method(req), HTTP_DELETE);
    assert_null(http_query(req, "q"));
    assert_string_equal(http_raw_query(req), "");
    http_reply_header(req, "Seen", http_header(req, "Told"));
    http_reply_data(req, 200, "text/other", http_path_param(req, "x"),
                    strlen(http_path_param(req, "x")));
}

static void other_fails(struct http_request *req)
{
    struct error err;
    http_reply_header(req, "Seen", "nothing");
    error_set(&err, E_OBJECT_NOT_FOUND, "gone");
    http_reply_error(req, &err);
}

/* The file has fewer bytes than the reply says. */
static void other_cuts(struct http_request *req)
{
    http_reply_header(req, "Seen", "nothing");
    http_reply_file(req, 200, open("/dev/null", O_RDONLY | O_CLOEXEC), 0, 10, NULL);
}

static void other_file(struct http_request *req)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    http_reply_file(req, 206, fd, 1, 3, NULL);
}

static struct buf stored;

static size_t other_data(struct http_request *req, void *ctx, const char *data, size_t len)
{
    (void)req;
    buf_append(ctx, data, len);
    return len;
}

static void other_end(struct http_request *req, void *ctx)
{
    const struct buf *b = ctx;
    http_reply_data(req, 200, "text/other", b->data, b->len);
}

static void other_cut(struct http_request *req, void *ctx)
{
    (void)req;
    (void)ctx;
    cut++;
}

static void other_put(struct http_request *req)
{
    static const struct http_body_ops ops = {
        .data = other_data, .end = other_end, .cut = other_cut};
    assert_int_equal(http_content_length(req), 7);
    assert_false(http_body_comes_once(req));
    buf_clear(&stored);
    http_take_body(req, &ops, &stored);
}

/* --- the first one ---------------------------------------------------------------------------- */

struct other {
    const struct http_body_ops *ops;
    void *ctx;
};

static void show_header(void *ctx, const char *name, const char *value)
{
    if (strcmp(name, "Seen") == 0 || strcmp(name, "Content-Type") == 0)
        http_reply_header(ctx, strcmp(name, "Seen") == 0 ? "Translated" : name, value);
}

static void replied(struct http_request *req, void *ctx, const struct error *failure)
{
    (void)ctx;
    if (failure != NULL) {
        http_reply_drop(req);
        http_reply_header(req, "Failure", failure->message);
        http_reply_empty(req, failure->code == E_OBJECT_NOT_FOUND ? 204 : 500);
        return;
    }
    http_reply_take_headers(req, show_header, req);
    http_reply_as_it_is(req, http_reply_status(req) + 1);
}

static void takes(void *ctx, const struct http_body_ops *ops, void *other_ctx)
{
    *(struct other *)ctx = (struct other){ops, other_ctx};
}

/* A body with '!' in it is wrong. */
static size_t first_data(struct http_request *req, void *ctx, const char *data, size_t len)
{
    const struct other *o = ctx;
    if (memchr(data, '!', len) == NULL)
        return o->ops->data(req, o->ctx, data, len);
    assert_true(http_refuse_body(req));
    http_reply_drop(req);
    http_reply_empty(req, 400);
    return len;
}

/* And so is one that ends with '?'. */
static void first_end(struct http_request *req, void *ctx)
{
    const struct other *o = ctx;
    if (stored.data[stored.len - 1] != '?') {
        o->ops->end(req, o->ctx);
        return;
    }
    assert_true(http_refuse_body(req));
    http_reply_drop(req);
    http_reply_empty(req, 400);
}

static void first_cut(struct http_request *req, void *ctx)
{
    const struct other *o = ctx;
    o->ops->cut(req, o->ctx);
}

static void first(struct http_request *req)
{
    static const struct {
        const char *name;
        void (*begin)(struct http_request *req);
    } others[] = {{"get", other_get},   {"fails", other_fails}, {"cuts", other_cuts},
                  {"file", other_file}, {"put", other_put},     {"refuses", hello}};
    static const struct http_body_ops ops = {
        .data = first_data, .end = first_end, .cut = first_cut};
    static const char *const headers[] = {"Told: this one", NULL};
    struct http_recast *as = arena_alloc(http_arena(req), sizeof *as);
    struct http_parameter *path = arena_alloc(http_arena(req), 2 * sizeof *path);
    *as = (struct http_recast){
        .method = HTTP_DELETE, .path = path, .headers = headers, .content_length = 7};
    path[0] = (struct http_parameter){"x", "as the other one sees it"};
    as->ctx = arena_alloc(http_arena(req), sizeof(struct other));
    as->body = &ops;
    as->takes = takes;
    as->replied = replied;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strcmp(http_path_param(req, "which"), others[i].name) == 0)
            as->begin = others[i].begin;
    }
    http_on_end(req, on_end, NULL);
    http_reply_header(req, "Before", "stays");
    http_recast(req, as);
}

#define ROW(n, m)                                                                      \
    {                                                                                  \
        .name = n, .method = m, .pattern = "/{which}", .nets = 1, .right = RIGHT_NONE, \
        .query = HTTP_PARAMETERS({"q", ""}), .begin = first                            \
    }
static const struct http_route routes[] = {
    ROW("get", HTTP_GET), ROW("put", HTTP_PUT), {.name = NULL}};

static int start(void **state)
{
    (void)state;
    static const struct http_route *const tables[] = {routes, NULL};
    const struct http_server_config config = {
        .node = "n1",
        .address = "127.0.0.1",
        .net = NET_PUBLIC,
        .threads = 1,
        .connections_max = 10,
        .connection_memory = 32 * 1024,
        .idle_timeout_s = 600,
        .head_timeout_ms = 60000,
        .routes = tables,
    };
    struct error err = ERROR_INIT;
    cut = ended = 0;
    if (http_server_new(&config, &server, &err) != 0)
        fail_msg("%s", err.message);
    port = http_server_port(server);
    return 0;
}

/* --- tests ------------------------------------------------------------------------------------ */

static void ask(struct wire *w, const char *which, struct wire_reply *r)
{
    wire_print(w, "GET /%s?q HTTP/1.1\r\nHost: x\r\nTold: another\r\n\r\n", which);
    wire_read(w, false, r);
    assert_string_equal(wire_header(r, "Before"), "stays");
    assert_null(wire_header(r, "Seen"));
}

static void test_head_and_reply_are_translated(void **state)
{
    (void)state;
    struct wire w = wire_open(port);
    struct wire_reply r;
    ask(&w, "get", &r);
    assert_int_equal(r.status, 201);
    assert_string_equal(buf_str(&r.body), "as the other one sees it");
    assert_string_equal(wire_header(&r, "Translated"), "this one");
    assert_string_equal(wire_header(&r, "Content-Type"), "text/other");
    wire_reply_done(&r);
    ask(&w, "file", &r);
    assert_int_equal(r.status, 207);
    assert_string_equal(buf_str(&r.body), "ELF");
    wire_reply_done(&r);
    wire_close(&w);
}

static void test_failures_are_told(void **state)
{
    (void)state;
    struct wire w = wire_open(port);
    struct wire_reply r;
    ask(&w, "fails", &r);
    assert_int_equal(r.status, 204);
    assert_string_equal(wire_header(&r, "Failure"), "gone");
    wire_reply_done(&r);
    ask(&w, "cuts", &r);
    assert_int_equal(r.status, 500);
    assert_non_null(wire_header(&r, "Failure"));
    wire_reply_done(&r);
    wire_close(&w);
    wait_for(&ended, 2);
}

static void check_put(const char *which, const char *body, int status, const char *replied_with)
{
    struct wire w = wire_open(port);
    struct wire_reply r;
    wire_print(&w, "PUT /%s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", which);
    wire_print(&w, "%zx\r\n%s\r\n0\r\n\r\n", strlen(body), body);
    wire_read(&w, false, &r);
    assert_int_equal(r.status, status);
    assert_string_equal(wire_header(&r, "Before"), "stays");
    assert_string_equal(buf_str(&r.body), replied_with);
    wire_reply_done(&r);
    wire_close(&w);
}

static void test_body_passes_through(void **state)
{
    (void)state;
    check_put("put", "a body.", 201, "a body.");
    assert_int_equal(cut, 0);
    check_put("put", "a body!", 400, "");
    assert_int_equal(cut, 1);
    check_put("put", "a body?", 400, "");
    assert_int_equal(cut, 2);
    check_put("refuses", "a body.", 201, "hello");
    assert_int_equal(cut, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_head_and_reply_are_translated, start, stop),
        cmocka_unit_test_setup_teardown(test_failures_are_told, start, stop),
        cmocka_unit_test_setup_teardown(test_body_passes_through, start, stop),
    };
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    buf_done(&stored);
    return rc;
}
