/* Calls that are wrong: each has its answer, and changes nothing. */
#include "proxy/primary/proxy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "common/jsonx.h"
#include "proxy/testing/test_cluster.h"

static struct test_client client;

static int open_client(void **state)
{
    (void)state;
    test_client_open(&client);
    return 0;
}

static int close_client(void **state)
{
    (void)state;
    test_client_close(&client);
    return 0;
}

static int64_t version_of(const struct test_proxy *p)
{
    _cleanup_json_ json_t *doc =
        test_json(&client, HTTP_GET, p->proxy->public_url, "/v1/cluster", NULL, 200);
    return json_integer_value(json_object_get(doc, "version"));
}

static const struct {
    enum http_method method;
    const char *path;
    const char *body;
    int status;
    const char *code;
    const char *words;
} calls[] = {
    {HTTP_POST, "/v1/buckets/n", "", 400, "invalid_json", "line"},
    {HTTP_POST, "/v1/buckets/n", "[]", 400, "invalid_json", "object"},
    {HTTP_POST, "/v1/buckets/n", "{}", 400, "invalid_json", "action"},
    {HTTP_POST, "/v1/buckets/n", "{\"action\": 5}", 400, "invalid_json", "action"},
    {HTTP_POST, "/v1/buckets/n", "{\"action\": \"explode\"}", 400, "invalid_argument",
     "'explode' is not create or listobjects"},
    {HTTP_POST, "/v1/buckets/n", "{\"action\": \"create\", \"value\": 5}", 400, "invalid_json",
     "value"},
    {HTTP_POST, "/v1/buckets/n", "{\"action\": \"create\", \"value\": {\"colour\": 1}}", 400,
     "invalid_json", "colour"},
    {HTTP_POST, "/v1/buckets/n", "{\"action\": \"create\", \"value\": {\"copies\": \"1\"}}", 400,
     "invalid_json", "copies"},
    {HTTP_POST, "/v1/buckets/n", "{\"action\": \"create\", \"value\": {\"copies\": 9}}", 400,
     "invalid_argument", "copies"},
    {HTTP_POST, "/v1/buckets/-n", "{\"action\": \"create\"}", 400, "invalid_name", "-n"},
    {HTTP_POST, "/v1/buckets/b", "{\"action\": \"create\"}", 409, "bucket_exists", "'b'"},
    {HTTP_PUT, "/v1/buckets/b", "{\"action\": \"setprops\"}", 400, "invalid_json", "value"},
    {HTTP_PUT, "/v1/buckets/b", "{\"action\": \"create\"}", 400, "invalid_argument",
     "is not setprops"},
    {HTTP_PUT, "/v1/buckets/x", "{\"action\": \"setprops\", \"value\": {}}", 404,
     "bucket_not_found", "'x'"},
    {HTTP_DELETE, "/v1/buckets/x", NULL, 404, "bucket_not_found", "'x'"},
    {HTTP_DELETE, "/v1/buckets/b", "{\"action\": \"keep\"}", 400, "invalid_argument", "keep"},
    {HTTP_GET, "/v1/buckets/x", NULL, 404, "bucket_not_found", "'x'"},
    {HTTP_GET, "/v1/objects/x/o", NULL, 404, "bucket_not_found", "'x'"},
    {HTTP_GET, "/v1/objects/-x/o", NULL, 400, "invalid_name", "'-x'"},
    {HTTP_GET, "/v1/objects/b/%ff", NULL, 400, "invalid_name", "UTF-8"},
    {HTTP_GET, "/v1/objects/b/o", NULL, 503, "no_targets", "no target"},
    {HTTP_GET, "/v1/objects/b", NULL, 503, "no_targets", "no target"},
    {HTTP_GET, "/v1/objects/x", NULL, 404, "bucket_not_found", "'x'"},
    {HTTP_GET, "/v1/objects/b?limit=0", NULL, 400, "invalid_argument", "limit"},
    {HTTP_GET, "/v1/objects/b?limit=10001", NULL, 400, "invalid_argument", "limit"},
    {HTTP_GET, "/v1/objects/b?limit=x", NULL, 400, "invalid_argument", "limit"},
    {HTTP_GET, "/v1/objects/b?partial=x", NULL, 400, "invalid_argument", "partial"},
    {HTTP_GET, "/v1/objects/b?token=x", NULL, 400, "invalid_argument", "token"},
    {HTTP_GET, "/v1/cluster?what=x", NULL, 400, "invalid_argument", "'x'"},
    {HTTP_GET, "/v1/daemon?what=x", NULL, 400, "invalid_argument", "'x'"},
    {HTTP_PUT, "/v1/cluster", "{\"action\": \"setconfig\"}", 400, "invalid_json", "name"},
    {HTTP_PUT, "/v1/cluster", "{\"action\": \"x\", \"name\": \"y\"}", 400, "invalid_argument",
     "'x'"},
    {HTTP_PUT, "/v1/cluster", "{\"action\": \"setconfig\", \"name\": \"x\", \"value\": 1}", 404,
     "not_found", "'x'"},
    {HTTP_PUT, "/v1/cluster", "{\"action\": \"setconfig\", \"name\": \"nodes_max\", \"value\": 0}",
     400, "invalid_argument", "nodes_max"},
    {HTTP_PUT, "/v1/cluster", "{\"action\": \"setconfig\", \"name\": \"nodes_max\", \"value\": []}",
     400, "invalid_json", "value"},
    {HTTP_PUT, "/v1/cluster", "{\"action\": \"removenode\", \"name\": \"x\"}", 404,
     "node_not_found", "'x'"},
    {HTTP_PUT, "/v1/cluster", "{\"action\": \"removenode\", \"name\": \"p1\"}", 409, "node_state",
     "active"},
    {HTTP_POST, "/v1/cluster/register", "{}", 404, "no_such_route", "unknown path"},
    {HTTP_POST, "/v1/cluster/documents", "{}", 404, "no_such_route", "control listener"},
};

static void each_malformed_call_has_its_answer(void **unused)
{
    (void)unused;
    struct test_proxy *p = test_proxy_new("p1", NULL, NULL);
    const char *public_url = p->proxy->public_url;
    json_decref(test_json(&client, HTTP_POST, public_url, "/v1/buckets/b",
                          "{\"action\": \"create\"}", 201));
    int64_t before = version_of(p);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        bool admin = calls[i].method == HTTP_PUT && strcmp(calls[i].path, "/v1/cluster") == 0;
        test_error(&client, calls[i].method, admin ? p->proxy->control_url : public_url,
                   calls[i].path, calls[i].body, calls[i].status, calls[i].code, calls[i].words);
    }
    assert_int_equal(version_of(p), before);
    test_proxy_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_malformed_call_has_its_answer)};
    return cmocka_run_group_tests(tests, open_client, close_client);
}
