#include "net/http/router.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void nothing(struct http_request *req)
{
    (void)req;
}

#define ROUTE(m, p, n)                                                                      \
    {                                                                                       \
        .name = #m " " p, .method = HTTP_##m, .pattern = p, .nets = n, .right = RIGHT_NONE, \
        .begin = nothing                                                                    \
    }

static const struct http_route objects[] = {
    ROUTE(GET, "/v1/objects/{bucket}/{object...}", NET_PUBLIC),
    ROUTE(PUT, "/v1/objects/{bucket}/{object...}", NET_PUBLIC),
    ROUTE(GET, "/v1/objects/{bucket}", NET_PUBLIC),
    {.name = NULL},
};
static const struct http_route others[] = {
    ROUTE(GET, "/v1/buckets/*", NET_PUBLIC),
    ROUTE(GET, "/v1/buckets/{name}", NET_PUBLIC),
    ROUTE(DELETE, "/v1/buckets/{bucket}", NET_PUBLIC),
    ROUTE(DELETE, "/v1/sort", NET_PUBLIC),
    ROUTE(DELETE, "/v1/sort/abort", NET_PUBLIC),
    ROUTE(POST, "/v1/x/{job}/merge", NET_DATA),
    ROUTE(GET, "/v1/x/special/{what}", NET_DATA | NET_PUBLIC),
    ROUTE(GET, "/v1/x/{job}/status", NET_DATA | NET_PUBLIC),
    {.name = NULL},
};
static const struct http_route *const tables[] = {objects, others, NULL};

struct row {
    enum http_method method;
    const char *path;
    int code;
    const char *route;
    const char *params; /* "name=text name=text" */
};

static void check(const struct router *r, const struct row *row)
{
    struct router_match m;
    int code = router_find(r, row->method, row->path, strlen(row->path), &m);
    if (code != row->code)
        fail_msg("%s: %s", row->path, error_name(code));
    if (code != 0) {
        assert_null(m.route);
        return;
    }
    assert_string_equal(m.route->name, row->route);
    assert_ptr_equal(router_route(r, m.index), m.route);
    _cleanup_(buf_done)
    struct buf params = BUF_INIT;
    for (size_t i = 0; i < m.param_count; i++)
        buf_printf(&params, "%s%.*s=%.*s", i > 0 ? " " : "", (int)m.params[i].name_len,
                   m.params[i].name, (int)m.params[i].len, m.params[i].text);
    assert_string_equal(buf_str(&params), row->params);
}

static void test_find(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {HTTP_GET, "/v1/objects/b/o", 0, "GET /v1/objects/{bucket}/{object...}",
         "bucket=b object=o"},
        {HTTP_PUT, "/v1/objects/b/o/p//q/", 0, "PUT /v1/objects/{bucket}/{object...}",
         "bucket=b object=o/p//q/"},
        {HTTP_GET, "/v1/objects/b//", 0, "GET /v1/objects/{bucket}/{object...}",
         "bucket=b object=/"},
        {HTTP_GET, "/v1/objects/b", 0, "GET /v1/objects/{bucket}", "bucket=b"},
        {HTTP_GET, "/v1/objects/b/", 0, "GET /v1/objects/{bucket}", "bucket=b"},
        {HTTP_GET, "/v1/objects/a%2Fb/%2F", 0, "GET /v1/objects/{bucket}/{object...}",
         "bucket=a%2Fb object=%2F"},
        {HTTP_GET, "/v1/%6fbject%73/b", 0, "GET /v1/objects/{bucket}", "bucket=b"},
        {HTTP_GET, "/v1/objects%2Fb", E_ROUTE, NULL, NULL},
        {HTTP_GET, "/v1/objects//o", E_ROUTE, NULL, NULL},
        {HTTP_GET, "/v1/objects/", E_ROUTE, NULL, NULL},
        {HTTP_GET, "/v1/objects", E_ROUTE, NULL, NULL},
        {HTTP_GET, "/v1/object", E_ROUTE, NULL, NULL},
        {HTTP_GET, "/v1/objects%", E_ROUTE, NULL, NULL},
        {HTTP_GET, "/v1/object%7", E_ROUTE, NULL, NULL},
        {HTTP_GET, "/v1/object%zz", E_ROUTE, NULL, NULL},
        {HTTP_GET, "", E_ROUTE, NULL, NULL},
        {HTTP_GET, "/", E_ROUTE, NULL, NULL},
        {HTTP_GET, "//", E_ROUTE, NULL, NULL},
        {HTTP_GET, "v1/objects/b", E_ROUTE, NULL, NULL},
        {HTTP_GET, "*", E_ROUTE, NULL, NULL},
        {HTTP_DELETE, "/v1/objects/b", E_METHOD, NULL, NULL},
        {HTTP_OTHER, "/v1/objects/b/o", E_METHOD, NULL, NULL},
        {HTTP_GET, "/v1/buckets/*", 0, "GET /v1/buckets/*", ""},
        {HTTP_GET, "/v1/buckets/**", 0, "GET /v1/buckets/{name}", "name=**"},
        {HTTP_DELETE, "/v1/buckets/*", 0, "DELETE /v1/buckets/{bucket}", "bucket=*"},
        {HTTP_DELETE, "/v1/sort/", 0, "DELETE /v1/sort", ""},
        {HTTP_DELETE, "/v1/sort//", E_ROUTE, NULL, NULL},
        {HTTP_DELETE, "/v1/sort/abort", 0, "DELETE /v1/sort/abort", ""},
        {HTTP_POST, "/v1/x/j1/merge", 0, "POST /v1/x/{job}/merge", "job=j1"},
        {HTTP_POST, "/v1/x/special/merge", 0, "POST /v1/x/{job}/merge", "job=special"},
        {HTTP_GET, "/v1/x/special/status", 0, "GET /v1/x/special/{what}", "what=status"},
        {HTTP_GET, "/v1/x/other/status", 0, "GET /v1/x/{job}/status", "job=other"},
        {HTTP_GET, "/v1/x/j1/merge", E_METHOD, NULL, NULL},
    };
    struct router *r;
    assert_int_equal(router_new(tables, NET_ALL, &r, NULL), 0);
    assert_int_equal(router_count(r), 11);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check(r, &rows[i]);
    router_free(r);
}

static void test_nets(void **state)
{
    (void)state;
    struct router *r;
    assert_int_equal(router_new(tables, NET_DATA, &r, NULL), 0);
    assert_int_equal(router_count(r), 3);
    check(r, &(struct row){HTTP_POST, "/v1/x/j/merge", 0, "POST /v1/x/{job}/merge", "job=j"});
    check(r, &(struct row){HTTP_GET, "/v1/objects/b", E_ROUTE, NULL, NULL});
    router_free(r);
}

static void test_allow(void **state)
{
    (void)state;
    struct router *r;
    assert_int_equal(router_new(tables, NET_ALL, &r, NULL), 0);
    struct router_match m;
    _cleanup_(buf_done)
    struct buf allow = BUF_INIT;
    assert_int_equal(router_find(r, HTTP_POST, "/v1/objects/b/o", 15, &m), E_METHOD);
    router_allow(m.allowed, &allow);
    assert_string_equal(buf_str(&allow), "GET, PUT");
    buf_clear(&allow);
    /* Every pattern that fits the path counts, not only the best one. */
    assert_int_equal(router_find(r, HTTP_PUT, "/v1/buckets/*", 13, &m), E_METHOD);
    router_allow(m.allowed, &allow);
    assert_string_equal(buf_str(&allow), "GET, DELETE");
    router_free(r);
}

static void test_bad_tables(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second, *words;
    } rows[] = {
        {"v1", NULL, "malformed"},
        {"", NULL, "malformed"},
        {"/a//b", NULL, "malformed"},
        {"/a/", NULL, "malformed"},
        {"/{}", NULL, "malformed"},
        {"/a{x}", NULL, "malformed"},
        {"/{x", NULL, "malformed"},
        {"/{x...}/b", NULL, "malformed"},
        {"/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}", NULL, "malformed"},
        {"/a/{x}", "/a/{y}", "same call"},
        {"/a/{x...}", "/a/{x...}", "same call"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct http_route table[] = {
            {.name = "one", .pattern = rows[i].first, .nets = NET_ALL, .right = RIGHT_NONE},
            {.name = rows[i].second != NULL ? "two" : NULL,
             .pattern = rows[i].second,
             .nets = NET_ALL,
             .right = RIGHT_NONE},
            {.name = NULL},
        };
        const struct http_route *const list[] = {table, NULL};
        struct router *r;
        struct error err = ERROR_INIT;
        assert_int_equal(router_new(list, NET_ALL, &r, &err), E_INVALID);
        assert_non_null(strstr(err.message, rows[i].words));
    }
}

static void test_a_row_says_which_right_a_user_needs(void **state)
{
    (void)state;
    static const struct {
        unsigned nets;
        enum right right;
        int code;
    } rows[] = {
        {NET_PUBLIC, RIGHT_UNSET, E_INVALID}, {NET_DATA, RIGHT_UNSET, E_INVALID},
        {NET_ALL, RIGHT_NODE, E_INVALID},     {NET_DATA, RIGHT_NODE, 0},
        {NET_PUBLIC, RIGHT_NONE, 0},          {NET_PUBLIC, RIGHT_READ, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct http_route table[] = {
            {.name = "one", .pattern = "/a", .nets = rows[i].nets, .right = rows[i].right},
            {.name = NULL},
        };
        const struct http_route *const list[] = {table, NULL};
        struct router *r = NULL;
        assert_int_equal(router_new(list, NET_ALL, &r, NULL), rows[i].code);
        router_free(r);
    }
}

static void test_a_route_for_any_method_and_the_root(void **state)
{
    (void)state;
    static const struct http_route table[] = {
        ROUTE(ANY, "/", NET_S3),
        ROUTE(ANY, "/{path...}", NET_S3),
        {.name = NULL},
    };
    static const struct http_route *const list[] = {table, NULL};
    static const struct row rows[] = {
        {HTTP_GET, "/", 0, "ANY /", ""},
        {HTTP_OTHER, "/", 0, "ANY /", ""},
        {HTTP_PUT, "/b", 0, "ANY /{path...}", "path=b"},
        {HTTP_OTHER, "/b/k/", 0, "ANY /{path...}", "path=b/k/"},
        {HTTP_GET, "//", 0, "ANY /{path...}", "path=/"},
    };
    struct router *r = NULL;
    assert_int_equal(router_new(list, NET_S3, &r, NULL), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check(r, &rows[i]);
    router_free(r);
    static const struct http_route twice[] = {
        ROUTE(PUT, "/a", NET_S3), ROUTE(ANY, "/a", NET_S3), {.name = NULL}};
    static const struct http_route *const doubled[] = {twice, NULL};
    assert_int_equal(router_new(doubled, NET_S3, &r, NULL), E_INVALID);
}

static void test_documents(void **state)
{
    (void)state;
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    http_routes_markdown(tables, &text);
    assert_non_null(strstr(text.data, "`PUT /v1/objects/{bucket}/{object...}`"));
    assert_non_null(strstr(text.data, "- Listeners: public, data\n"));
    json_t *doc = http_routes_json(tables);
    json_t *routes = json_object_get(doc, "routes");
    assert_int_equal(json_array_size(routes), 11);
    assert_string_equal(json_string_value(json_object_get(json_array_get(routes, 2), "path")),
                        "/v1/objects/{bucket}");
    json_decref(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_nets),
        cmocka_unit_test(test_allow),
        cmocka_unit_test(test_bad_tables),
        cmocka_unit_test(test_a_row_says_which_right_a_user_needs),
        cmocka_unit_test(test_a_route_for_any_method_and_the_root),
        cmocka_unit_test(test_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
