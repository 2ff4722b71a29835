/* Whole proxies in this process, spoken to over HTTP. */
#include "proxy/primary/proxy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/clock.h"
#include "common/fault.h"
#include "common/jsonx.h"
#include "common/mem.h"
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
    fault_configure(NULL, NULL);
    test_client_close(&client);
    return 0;
}

static const char *public_of(const struct test_proxy *p)
{
    return p->proxy->public_url;
}

static const char *control_of(const struct test_proxy *p)
{
    return p->proxy->control_url;
}

static void make_bucket(const struct test_proxy *p, const char *path)
{
    json_decref(test_json(&client, HTTP_POST, public_of(p), path, "{\"action\": \"create\"}", 201));
}

static size_t bucket_count(const struct test_proxy *p)
{
    _cleanup_json_ json_t *doc =
        test_json(&client, HTTP_GET, public_of(p), "/v1/buckets", NULL, 200);
    return json_array_size(json_object_get(doc, "buckets"));
}

static int64_t cluster_field(const struct test_proxy *p, const char *field)
{
    _cleanup_json_ json_t *doc =
        test_json(&client, HTTP_GET, public_of(p), "/v1/cluster", NULL, 200);
    return json_integer_value(json_object_get(doc, field));
}

/* The state of a node as the cluster's document has it; "" where it is not in it. */
static void node_state_of(const struct test_proxy *p, const char *id, char out[static 32])
{
    _cleanup_json_ json_t *doc =
        test_json(&client, HTTP_GET, public_of(p), "/v1/cluster", NULL, 200);
    size_t i;
    json_t *node;
    out[0] = '\0';
    json_array_foreach(json_object_get(doc, "nodes"), i, node)
    {
        if (strcmp(json_string_value(json_object_get(node, "id")), id) == 0)
            snprintf(out, 32, "%s", json_string_value(json_object_get(node, "state")));
    }
}

static bool node_is(const struct test_proxy *p, const char *id, const char *state)
{
    char now[32];
    node_state_of(p, id, now);
    return strcmp(now, state) == 0;
}

/* --- buckets --------------------------------------------------------------------------------- */

static void a_bucket_is_made_changed_and_destroyed(void **unused)
{
    (void)unused;
    struct test_proxy *p = test_proxy_new("p1", NULL, NULL);
    make_bucket(p, "/v1/buckets/b");
    _cleanup_json_ json_t *made =
        test_json(&client, HTTP_GET, public_of(p), "/v1/buckets/b", NULL, 200);
    assert_string_equal(json_string_value(json_object_get(made, "name")), "b");
    assert_int_equal(json_integer_value(json_object_get(made, "id")), 1);
    assert_int_equal(test_call(&client, HTTP_HEAD, public_of(p), "/v1/buckets/b", NULL, NULL), 200);
    _cleanup_json_ json_t *changed =
        test_json(&client, HTTP_PUT, public_of(p), "/v1/buckets/b",
                  "{\"action\": \"setprops\", \"value\": {\"durability\": \"async\"}}", 200);
    json_t *props = json_object_get(changed, "props");
    assert_string_equal(json_string_value(json_object_get(props, "durability")), "async");
    assert_string_equal(json_string_value(json_object_get(props, "checksum")), "xxh3");
    make_bucket(p, "/v1/buckets/a");
    assert_int_equal(bucket_count(p), 2);
    assert_int_equal(test_call(&client, HTTP_DELETE, public_of(p), "/v1/buckets/b", NULL, NULL),
                     204);
    assert_int_equal(test_call(&client, HTTP_DELETE, public_of(p), "/v1/buckets/a",
                               "{\"action\": \"destroylb\"}", NULL),
                     204);
    assert_int_equal(test_call(&client, HTTP_HEAD, public_of(p), "/v1/buckets/b", NULL, NULL), 404);
    assert_int_equal(bucket_count(p), 0);
    test_proxy_free(p);
}

static void settings_change_and_go_back(void **unused)
{
    (void)unused;
    struct test_proxy *p = test_proxy_new("p1", NULL, NULL);
    _cleanup_json_ json_t *set =
        test_json(&client, HTTP_PUT, control_of(p), "/v1/cluster",
                  "{\"action\": \"setconfig\", \"name\": \"buckets_max\", \"value\": \"1\"}", 200);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(set, "values"), "buckets_max")), "1");
    make_bucket(p, "/v1/buckets/a");
    test_error(&client, HTTP_POST, public_of(p), "/v1/buckets/b", "{\"action\": \"create\"}", 503,
               "overloaded", "buckets_max");
    _cleanup_json_ json_t *unset =
        test_json(&client, HTTP_PUT, control_of(p), "/v1/cluster",
                  "{\"action\": \"setconfig\", \"name\": \"buckets_max\"}", 200);
    assert_int_equal(json_object_size(json_object_get(unset, "values")), 0);
    make_bucket(p, "/v1/buckets/b");
    test_proxy_free(p);
}

/* --- documents on disk ------------------------------------------------------------------------ */

static void documents_survive_a_restart(void **unused)
{
    (void)unused;
    static const char *const small_fold[] = {"metastore_fold=4KiB", NULL};
    struct test_proxy *p = test_proxy_new("p1", NULL, small_fold);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 8; i++) {
            char path[40];
            snprintf(path, sizeof path, "/v1/buckets/b-%d-%d", round, i);
            make_bucket(p, path);
        }
        int64_t version = cluster_field(p, "version");
        int64_t term = cluster_field(p, "term");
        test_proxy_stop(p);
        test_proxy_start(p);
        assert_int_equal(bucket_count(p), (round + 1) * 8);
        assert_true(cluster_field(p, "term") > term);
        assert_int_equal(cluster_field(p, "version"), version + 1);
    }
    test_proxy_free(p);
}

static void a_change_that_is_not_durable_is_not_made(void **unused)
{
    (void)unused;
    struct test_proxy *p = test_proxy_new("p1", NULL, NULL);
    int64_t version = cluster_field(p, "version");
    assert_int_equal(fault_configure("metastore.write=ENOSPC@1", NULL), 0);
    test_error(&client, HTTP_POST, public_of(p), "/v1/buckets/b", "{\"action\": \"create\"}", 507,
               "no_space", "No space");
    assert_int_equal(bucket_count(p), 0);
    assert_int_equal(cluster_field(p, "version"), version);
    make_bucket(p, "/v1/buckets/b");
    test_proxy_stop(p);
    test_proxy_start(p);
    assert_int_equal(bucket_count(p), 1);
    test_proxy_free(p);
}

static void a_directory_has_one_proxy(void **unused)
{
    (void)unused;
    struct test_proxy *p = test_proxy_new("p1", NULL, NULL);
    struct proxy_params params = {0};
    struct proxy *second = NULL;
    struct error err = ERROR_INIT;
    assert_int_equal(params_defaults(proxy_param_rows, &params, NULL), 0);
    assert_int_equal(params_set(proxy_param_rows, &params, "id", "p1", "test", NULL), 0);
    assert_int_equal(params_set(proxy_param_rows, &params, "dir", p->dir, "test", NULL), 0);
    assert_int_equal(proxy_new(&params, &second, NULL), 0);
    assert_int_equal(proxy_start(second, &err), E_EXISTS);
    assert_non_null(strstr(err.message, p->dir));
    proxy_free(second);
    test_proxy_free(p);
}

static void a_new_primary_begins_from_an_imported_state(void **unused)
{
    (void)unused;
    struct test_proxy *lost = test_proxy_new("p1", NULL, NULL);
    make_bucket(lost, "/v1/buckets/b");
    _cleanup_free_ char *text = NULL;
    assert_int_equal(
        test_call(&client, HTTP_GET, control_of(lost), "/v1/cluster/state", NULL, &text), 200);
    int64_t term = cluster_field(lost, "term");
    _cleanup_free_ char *file = xprintf("%s/copy.json", lost->dir);
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    _cleanup_free_ char *import = xprintf("import=%s", file);
    const char *const settings[] = {import, NULL};
    struct test_proxy *p = test_proxy_new("p1", NULL, settings);
    assert_int_equal(bucket_count(p), 1);
    assert_true(cluster_field(p, "term") > term);
    test_proxy_free(p);
    test_proxy_free(lost);
}

/* In the directory of another, with an embedded metastore and the parameter `more`. */
static int start_in(const struct test_proxy *of, const char *more, struct proxy **out,
                    struct error *err)
{
    struct proxy_params params = {0};
    assert_int_equal(params_defaults(proxy_param_rows, &params, NULL), 0);
    assert_int_equal(params_set(proxy_param_rows, &params, "id", "p2", "test", NULL), 0);
    assert_int_equal(params_set(proxy_param_rows, &params, "dir", of->dir, "test", NULL), 0);
    assert_int_equal(params_set(proxy_param_rows, &params, "import", more, "test", NULL), 0);
    assert_int_equal(proxy_new(&params, out, NULL), 0);
    return proxy_start(*out, err);
}

/* It has lost --join or --metastore, and not its memory. */
static void a_proxy_of_a_cluster_does_not_begin_another(void **unused)
{
    (void)unused;
    struct test_proxy *p1 = test_proxy_new("p1", NULL, NULL);
    struct test_proxy *p2 = test_proxy_new("p2", control_of(p1), NULL);
    make_bucket(p2, "/v1/buckets/b");
    _cleanup_free_ char *seen = xprintf("%s/state.json", p2->dir);
    _cleanup_free_ char *documents = xprintf("%s/metastore/snapshot", p2->dir);
    test_until(access(seen, F_OK) == 0);
    test_proxy_stop(p2);
    _cleanup_state_ const struct cluster_state *s = state_current(p1->proxy->state);
    struct proxy *p = NULL;
    struct error err = ERROR_INIT;
    assert_int_equal(start_in(p2, "", &p, &err), E_EXISTS);
    assert_non_null(strstr(err.message, s->cluster_id));
    assert_non_null(strstr(err.message, seen));
    proxy_free(p);
    assert_int_not_equal(access(documents, F_OK), 0);
    assert_int_equal(start_in(p2, seen, &p, &err), 0); /* the way back */
    proxy_free(p);
    assert_int_equal(access(documents, F_OK), 0);
    assert_int_equal(start_in(p2, "", &p, &err), 0);
    proxy_free(p);
    test_proxy_free(p2);
    test_proxy_free(p1);
}

/* --- nodes ----------------------------------------------------------------------------------- */

static void keepalive(struct test_proxy *p, const char *id, int status)
{
    _cleanup_free_ char *body =
        xprintf("{\"id\": \"%s\", \"boot\": \"first\", \"capacity\": {\"total_bytes\": 100, "
                "\"available_bytes\": 40}}",
                id);
    json_decref(
        test_json(&client, HTTP_POST, control_of(p), "/v1/cluster/keepalive", body, status));
}

static const char *const impatient[] = {"keepalive_timeout=300ms", NULL};

static void a_silent_target_is_given_up_and_taken_back(void **unused)
{
    (void)unused;
    struct test_proxy *p = test_proxy_new("p1", NULL, impatient);
    struct fake_target *t = fake_target_new("t1");
    test_join(&client, p, t);
    make_bucket(p, "/v1/buckets/b");
    assert_true(node_is(p, "t1", "active"));
    assert_int_equal(test_call(&client, HTTP_GET, public_of(p), "/v1/objects/b/o", NULL, NULL),
                     307);
    test_until(node_is(p, "t1", "unreachable"));
    test_error(&client, HTTP_GET, public_of(p), "/v1/objects/b/o", NULL, 503, "node_unreachable",
               "'t1'");
    test_error(&client, HTTP_GET, public_of(p), "/v1/objects/b", NULL, 503, "node_unreachable",
               "'t1'");
    keepalive(p, "t1", 200);
    test_until((keepalive(p, "t1", 200), node_is(p, "t1", "active")));
    _cleanup_json_ json_t *doc =
        test_json(&client, HTTP_GET, public_of(p), "/v1/cluster", NULL, 200);
    json_t *capacity =
        json_object_get(json_array_get(json_object_get(doc, "nodes"), 1), "capacity");
    assert_int_equal(json_integer_value(json_object_get(capacity, "available_bytes")), 40);
    test_until(node_is(p, "t1", "unreachable"));
    json_decref(test_json(&client, HTTP_PUT, control_of(p), "/v1/cluster",
                          "{\"action\": \"removenode\", \"name\": \"t1\"}", 200));
    keepalive(p, "t1", 404);
    fake_target_free(t);
    test_proxy_free(p);
}

static void a_redirect_names_object_and_state(void **unused)
{
    (void)unused;
    struct test_proxy *p = test_proxy_new("p1", NULL, NULL);
    struct fake_target *t = fake_target_new("t1");
    test_join(&client, p, t);
    make_bucket(p, "/v1/buckets/b");
    static const char request[] = "GET /v1/objects/b/a%2F../c?offset=5&dfcb=9 HTTP/1.1\r\n"
                                  "Host: localhost\r\nConnection: close\r\n\r\n";
    int fd = test_connect(public_of(p));
    test_send(fd, request, strlen(request));
    _cleanup_free_ char *reply = test_read_all(fd);
    close(fd);
    _cleanup_free_ char *location =
        xprintf("\r\nLocation: %s/v1/objects/b/a%%2F..%%2Fc?offset=5&dfcb=1&dfcv=%lld.3\r\n",
                fake_target_url(t), (long long)cluster_field(p, "term"));
    if (strstr(reply, "HTTP/1.1 307 ") != reply || strstr(reply, location) == NULL)
        fail_msg("%s lacks %s", reply, location);
    test_proxy_free(p);
    fake_target_free(t);
}

static void registrations_are_checked(void **unused)
{
    (void)unused;
#define NODE                                                                          \
    "\"role\": \"target\", \"public_url\": \"http://127.0.0.1:1\", \"control_url\": " \
    "\"http://127.0.0.1:1\", \"data_url\": \"http://127.0.0.1:1\""
    static const struct {
        const char *body;
        int status;
        const char *code;
        const char *words;
    } rows[] = {
        {"", 400, "invalid_json", "line"},
        {"{}", 400, "invalid_json", "'id'"},
        {"{\"id\": \"t1\", \"boot\": \"a\", \"role\": \"x\"}", 400, "invalid_argument", "'x'"},
        {"{\"id\": \"t1\", \"boot\": \"a\", " NODE ", \"cluster\": \"c-other\"}", 409,
         "wrong_cluster", "c-other"},
        {"{\"id\": \"p1\", \"boot\": \"a\", " NODE "}", 409, "exists", "'p1'"},
    };
    struct test_proxy *p = test_proxy_new("p1", NULL, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        test_error(&client, HTTP_POST, control_of(p), "/v1/cluster/register", rows[i].body,
                   rows[i].status, rows[i].code, rows[i].words);
    _cleanup_json_ json_t *info =
        test_json(&client, HTTP_GET, control_of(p), "/v1/daemon", NULL, 200);
    const char *cluster = json_string_value(json_object_get(info, "cluster"));
    _cleanup_free_ char *ahead = xprintf("{\"id\": \"t1\", \"boot\": \"a\", " NODE
                                         ", \"cluster\": \"%s\", \"term\": 1, \"version\": 999}",
                                         cluster);
    test_error(&client, HTTP_POST, control_of(p), "/v1/cluster/register", ahead, 409, "stale_map",
               "--import");
    test_error(&client, HTTP_POST, control_of(p), "/v1/cluster/keepalive",
               "{\"id\": \"t1\", \"boot\": \"a\"}", 404, "node_not_found", "t1");
    test_error(&client, HTTP_PUT, control_of(p), "/v1/cluster/state", "{}", 409, "exists",
               "primary");
    assert_int_equal(cluster_field(p, "version"), 1);
    test_proxy_free(p);
}

/* Whoever is refused for what it is has not taken the id from who has it. */
static void a_refused_registration_changes_nothing(void **unused)
{
    (void)unused;
    struct test_proxy *p = test_proxy_new("p1", NULL, NULL);
    struct fake_target *t = fake_target_new("t1");
    test_join(&client, p, t);
    _cleanup_free_ char *impostor = xprintf(
        "{\"id\": \"t1\", \"boot\": \"second\", \"role\": \"proxy\", \"public_url\": \"%s\", "
        "\"control_url\": \"%s\"}",
        fake_target_url(t), fake_target_url(t));
    test_error(&client, HTTP_POST, control_of(p), "/v1/cluster/register", impostor, 409, "exists",
               "target already");
    json_decref(test_json(&client, HTTP_POST, control_of(p), "/v1/cluster/keepalive",
                          "{\"id\": \"t1\", \"boot\": \"first\"}", 200));
    test_proxy_free(p);
    fake_target_free(t);
}

/* --- several proxies -------------------------------------------------------------------------- */

static void a_gateway_knows_what_was_answered_anywhere(void **unused)
{
    (void)unused;
    struct test_proxy *p1 = test_proxy_new("p1", NULL, NULL);
    struct test_proxy *p2 = test_proxy_new("p2", control_of(p1), NULL);
    struct test_proxy *p3 = test_proxy_new("p3", control_of(p2), NULL); /* joins through p2 */
    struct test_proxy *const all[] = {p1, p2, p3};
    for (unsigned i = 0; i < 30; i++) {
        char path[40];
        snprintf(path, sizeof path, "/v1/buckets/b%u", i);
        make_bucket(all[i % 3], path);
        for (unsigned at = 0; at < 3; at++)
            assert_int_equal(test_call(&client, HTTP_HEAD, public_of(all[at]), path, NULL, NULL),
                             200);
    }
    for (unsigned at = 0; at < 3; at++) {
        _cleanup_json_ json_t *doc =
            test_json(&client, HTTP_GET, public_of(all[at]), "/v1/cluster", NULL, 200);
        assert_string_equal(json_string_value(json_object_get(doc, "primary")), "p1");
        assert_int_equal(json_array_size(json_object_get(doc, "nodes")), 3);
    }
    test_error(&client, HTTP_POST, public_of(p2), "/v1/buckets/b0", "{\"action\": \"create\"}", 409,
               "bucket_exists", "b0");
    for (unsigned at = 0; at < 3; at++)
        test_proxy_free(all[at]);
}

static bool is_electable(const struct test_proxy *p, size_t i, bool otherwise)
{
    _cleanup_json_ json_t *doc =
        test_json(&client, HTTP_GET, public_of(p), "/v1/cluster", NULL, 200);
    json_t *node = json_array_get(json_object_get(doc, "nodes"), i);
    json_t *electable = json_object_get(node, "electable");
    return electable != NULL ? json_is_true(electable) : otherwise;
}

static void a_gateway_is_not_electable(void **unused)
{
    (void)unused;
    struct test_proxy *p1 = test_proxy_new("p1", NULL, NULL);
    struct test_proxy *p2 = test_proxy_new("p2", control_of(p1), NULL);
    assert_true(is_electable(p1, 0, false));
    test_until(!is_electable(p1, 1, true));
    test_proxy_free(p2);
    test_proxy_free(p1);
}

static void a_gateway_serves_and_restarts_without_the_primary(void **unused)
{
    (void)unused;
    struct test_proxy *p1 = test_proxy_new("p1", NULL, NULL);
    struct test_proxy *p2 = test_proxy_new("p2", control_of(p1), NULL);
    struct fake_target *t = fake_target_new("t1");
    test_join(&client, p1, t);
    make_bucket(p1, "/v1/buckets/b");
    test_until(test_call(&client, HTTP_GET, public_of(p2), "/v1/objects/b/o", NULL, NULL) == 307);
    test_proxy_stop(p1);
    for (int life = 0; life < 2; life++) {
        assert_int_equal(test_call(&client, HTTP_GET, public_of(p2), "/v1/objects/b/o", NULL, NULL),
                         307);
        assert_int_equal(bucket_count(p2), 1);
        test_error(&client, HTTP_POST, public_of(p2), "/v1/buckets/c", "{\"action\": \"create\"}",
                   503, "not_primary", "does not answer");
        _cleanup_json_ json_t *doc =
            test_json(&client, HTTP_GET, public_of(p2), "/v1/cluster", NULL, 200);
        assert_true(json_is_false(json_object_get(doc, "healthy")));
        test_proxy_stop(p2);
        test_proxy_start(p2);
    }
    fake_target_free(t);
    test_proxy_free(p1);
    test_proxy_free(p2);
}

static void a_primary_that_returns_is_followed(void **unused)
{
    (void)unused;
    struct test_proxy *p1 = test_proxy_new("p1", NULL, NULL);
    /* The port must be the same in its next life. */
    _cleanup_free_ char *control = xstrdup(control_of(p1));
    char public_port[32], control_port[32];
    snprintf(public_port, sizeof public_port, "public_port=%s", strrchr(public_of(p1), ':') + 1);
    snprintf(control_port, sizeof control_port, "control_port=%s", strrchr(control, ':') + 1);
    test_proxy_free(p1);
    const char *const ports[] = {public_port, control_port, NULL};
    p1 = test_proxy_new("p1", NULL, ports);
    struct test_proxy *p2 = test_proxy_new("p2", control_of(p1), NULL);
    test_proxy_stop(p1);
    test_proxy_start(p1);
    make_bucket(p1, "/v1/buckets/b");
    test_until(test_call(&client, HTTP_HEAD, public_of(p2), "/v1/buckets/b", NULL, NULL) == 200);
    test_until(node_is(p1, "p2", "active"));
    test_proxy_free(p2);
    test_proxy_free(p1);
}

static void what_a_proxy_has_passed_on_it_does_not_pass_on_again(void **unused)
{
    (void)unused;
    static const char *const headers[] = {"Dfc-Forwarded: p9, p2", NULL};
    struct test_proxy *p1 = test_proxy_new("p1", NULL, NULL);
    struct test_proxy *p2 = test_proxy_new("p2", control_of(p1), NULL);
    _cleanup_free_ char *url = xprintf("%s/v1/buckets/b", public_of(p2));
    const struct http_call call = {
        .method = HTTP_DELETE, .url = url, .headers = headers, .total_timeout_ms = 20000};
    struct http_result r = {0};
    struct error err = ERROR_INIT;
    assert_int_equal(http_call_wait(client.client, &call, &r, &err), E_NOT_PRIMARY);
    assert_int_equal(r.status, 503);
    http_result_done(&r);
    test_proxy_free(p2);
    test_proxy_free(p1);
}

/* --- from inside ----------------------------------------------------------------------------- */

static void a_worker_may_wait_for_a_commit(void **unused)
{
    (void)unused;
    struct test_proxy *p = test_proxy_new("p1", NULL, NULL);
    const struct bucket_props props = BUCKET_PROPS_DEFAULT;
    const struct command cmd = {.kind = CMD_BUCKET_CREATE, .name = "b", .props = &props};
    struct error err = ERROR_INIT;
    assert_int_equal(proxy_commit_wait(p->proxy, &cmd, &err), 0);
    assert_int_equal(proxy_commit_wait(p->proxy, &cmd, &err), E_BUCKET_EXISTS);
    assert_non_null(strstr(err.message, "'b'"));
    assert_int_equal(bucket_count(p), 1);
    test_proxy_free(p);
}

static void health_metrics_and_api_are_there(void **unused)
{
    (void)unused;
    struct test_proxy *p = test_proxy_new("p1", NULL, NULL);
    const char *const bases[] = {public_of(p), control_of(p)};
    for (size_t i = 0; i < 2; i++) {
        _cleanup_json_ json_t *health =
            test_json(&client, HTTP_GET, bases[i], "/v1/health", NULL, 200);
        assert_string_equal(json_string_value(json_object_get(health, "status")), "ready");
        _cleanup_free_ char *metrics = NULL;
        assert_int_equal(test_call(&client, HTTP_GET, bases[i], "/metrics", NULL, &metrics), 200);
        assert_non_null(strstr(metrics, "dfc_cluster_nodes{role=\"proxy\",state=\"active\"} 1"));
        _cleanup_json_ json_t *api = test_json(&client, HTTP_GET, bases[i], "/v1/api", NULL, 200);
        assert_true(json_array_size(json_object_get(api, "routes")) > 20);
        _cleanup_json_ json_t *stats =
            test_json(&client, HTTP_GET, bases[i], "/v1/daemon?what=stats", NULL, 200);
        assert_true(json_object_size(stats) > 5);
        _cleanup_json_ json_t *config =
            test_json(&client, HTTP_GET, bases[i], "/v1/daemon?what=config", NULL, 200);
        assert_string_equal(json_string_value(json_object_get(config, "id")), "p1");
    }
    test_proxy_free(p);
}

static void parameters_are_checked(void **unused)
{
    (void)unused;
    static const struct {
        const char *name, *value, *words;
    } rows[] = {
        {"id", "", "--id"},
        {"id", "a/b", "--id"},
        {"dir", "", "--dir"},
        {"keepalive_timeout", "900ms", "--keepalive-timeout"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct proxy_params params = {0};
        struct proxy *p = NULL;
        struct error err = ERROR_INIT;
        assert_int_equal(params_defaults(proxy_param_rows, &params, NULL), 0);
        assert_int_equal(params_set(proxy_param_rows, &params, "id", "p1", "test", NULL), 0);
        assert_int_equal(params_set(proxy_param_rows, &params, "dir", "/tmp", "test", NULL), 0);
        assert_int_equal(
            params_set(proxy_param_rows, &params, rows[i].name, rows[i].value, "test", NULL), 0);
        assert_int_equal(proxy_new(&params, &p, &err), E_INVALID);
        assert_non_null(strstr(err.message, rows[i].words));
        params_free(proxy_param_rows, &params);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bucket_is_made_changed_and_destroyed),
        cmocka_unit_test(settings_change_and_go_back),
        cmocka_unit_test(documents_survive_a_restart),
        cmocka_unit_test(a_change_that_is_not_durable_is_not_made),
        cmocka_unit_test(a_directory_has_one_proxy),
        cmocka_unit_test(a_new_primary_begins_from_an_imported_state),
        cmocka_unit_test(a_proxy_of_a_cluster_does_not_begin_another),
        cmocka_unit_test(a_silent_target_is_given_up_and_taken_back),
        cmocka_unit_test(a_redirect_names_object_and_state),
        cmocka_unit_test(registrations_are_checked),
        cmocka_unit_test(a_refused_registration_changes_nothing),
        cmocka_unit_test(a_gateway_knows_what_was_answered_anywhere),
        cmocka_unit_test(a_gateway_is_not_electable),
        cmocka_unit_test(a_gateway_serves_and_restarts_without_the_primary),
        cmocka_unit_test(a_primary_that_returns_is_followed),
        cmocka_unit_test(what_a_proxy_has_passed_on_it_does_not_pass_on_again),
        cmocka_unit_test(a_worker_may_wait_for_a_commit),
        cmocka_unit_test(health_metrics_and_api_are_there),
        cmocka_unit_test(parameters_are_checked),
    };
    return cmocka_run_group_tests(tests, open_client, close_client);
}
