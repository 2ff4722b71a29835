#include "proxy/testing/test_cluster.h"

#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/file.h"

/* --- a target that is not one ----------------------------------------------------------------- */

struct fake_target {
    char id[16];
    char *url;
    struct http_server *server;
    pthread_mutex_t lock; /* guards what follows */
    enum fake_mode mode;
    const char *const *names;
    const char *uploads;
    struct buf stored;
    struct buf headers; /* of the last call, as "Name: value\n" */
    uint64_t received;
    unsigned cut, busy;
    struct http_request *held[128]; /* that are not answered */
    unsigned held_count;
};

static void note_header(void *ctx, const char *name, const char *value)
{
    buf_printf(ctx, "%s: %s\n", name, value);
}

static void note_call(struct fake_target *t, struct http_request *req)
{
    buf_clear(&t->headers);
    http_each_header(req, note_header, &t->headers);
    buf_printf(&t->headers, "query: %s\n", http_raw_query(req));
    const char *object = http_path_param(req, "object");
    buf_printf(&t->headers, "object: %s\n", object != NULL ? object : "");
}

static size_t put_data(struct http_request *req, void *ctx, const char *data, size_t len)
{
    (void)req;
    struct fake_target *t = ctx;
    pthread_mutex_lock(&t->lock);
    buf_append(&t->stored, data, len);
    t->received += len;
    pthread_mutex_unlock(&t->lock);
    return len;
}

static void put_end(struct http_request *req, void *ctx)
{
    struct fake_target *t = ctx;
    pthread_mutex_lock(&t->lock);
    _cleanup_json_ json_t *doc = json_pack("{s:I}", "size", (json_int_t)t->stored.len);
    pthread_mutex_unlock(&t->lock);
    http_reply_header(req, "ETag", "\"1.2.3\"");
    http_reply_json(req, 200, doc);
}

static void put_cut(struct http_request *req, void *ctx)
{
    (void)req;
    struct fake_target *t = ctx;
    pthread_mutex_lock(&t->lock);
    t->cut++;
    pthread_mutex_unlock(&t->lock);
}

static void put_begin(struct http_request *req)
{
    static const struct http_body_ops ops = {.data = put_data, .end = put_end, .cut = put_cut};
    struct fake_target *t = http_user(req);
    pthread_mutex_lock(&t->lock);
    note_call(t, req);
    buf_clear(&t->stored);
    enum fake_mode mode = t->mode;
    pthread_mutex_unlock(&t->lock);
    if (mode == FAKE_REFUSES) {
        struct error err;
        error_set(&err, E_NO_SPACE, "the disk is full, says the test");
        http_reply_error(req, &err);
        return;
    }
    http_take_body(req, &ops, t);
}

/* A reply in pieces, so that it can be cut in its middle. */
struct giving {
    struct buf data;
    size_t at;
    enum fake_mode mode;
};

static ssize_t give(void *ctx, char *out, size_t max)
{
    struct giving *g = ctx;
    if (g->mode == FAKE_NEVER_ENDS) {
        memset(out, 'x', max);
        return (ssize_t)max;
    }
    size_t end = g->mode == FAKE_HANGS_UP ? g->data.len / 2 : g->data.len;
    size_t n = end - g->at < max ? end - g->at : max;
    if (n == 0)
        return g->mode == FAKE_HANGS_UP ? HTTP_STREAM_CUT : HTTP_STREAM_END;
    memcpy(out, g->data.data + g->at, n);
    g->at += n;
    return (ssize_t)n;
}

static void give_free(void *ctx)
{
    struct giving *g = ctx;
    buf_done(&g->data);
    free(g);
}

static bool get_is_held(struct fake_target *t, struct http_request *req)
{
    pthread_mutex_lock(&t->lock);
    bool holds = t->mode == FAKE_IS_SILENT && t->held_count < sizeof t->held / sizeof t->held[0];
    if (holds)
        t->held[t->held_count++] = req;
    pthread_mutex_unlock(&t->lock);
    return holds;
}

static bool get_is_refused(struct fake_target *t, struct http_request *req)
{
    struct error err;
    pthread_mutex_lock(&t->lock);
    bool refused = t->mode == FAKE_IS_BUSY;
    t->busy += refused;
    pthread_mutex_unlock(&t->lock);
    if (refused) {
        error_set(&err, E_NODE_UNREACHABLE, "not now, says the test");
        http_reply_error(req, &err);
    }
    return refused;
}

static void get_begin(struct http_request *req)
{
    static const struct http_stream_ops ops = {.read = give, .free = give_free};
    struct fake_target *t = http_user(req);
    if (get_is_held(t, req) || get_is_refused(t, req))
        return;
    struct giving *g = xcalloc(1, sizeof *g);
    pthread_mutex_lock(&t->lock);
    note_call(t, req);
    buf_append(&g->data, t->stored.data != NULL ? t->stored.data : "", t->stored.len);
    g->mode = t->mode;
    pthread_mutex_unlock(&t->lock);
    http_reply_header(req, "ETag", "\"1.2.3\"");
    http_reply_header(req, "Dfc-Meta-Colour", "blue");
    http_reply_header(req, "Content-Type", "image/x-test");
    http_reply_stream(req, 200, g->mode == FAKE_NEVER_ENDS ? -1 : (int64_t)g->data.len, &ops, g);
}

static void delete_begin(struct http_request *req)
{
    struct fake_target *t = http_user(req);
    pthread_mutex_lock(&t->lock);
    note_call(t, req);
    pthread_mutex_unlock(&t->lock);
    http_reply_empty(req, 204);
}

/* As a target's own list does, without delimiters. */
static json_t *names_page(const char *const *names, const char *start_after, size_t limit)
{
    json_t *entries = json_array();
    const char *last = "";
    for (; *names != NULL && json_array_size(entries) < limit; names++) {
        if (strcmp(*names, start_after) <= 0)
            continue;
        json_array_append_new(entries, json_pack("{s:s, s:s}", "name", *names, "version", "1.1.1"));
        last = *names;
    }
    return json_pack("{s:o, s:[], s:s}", "entries", entries, "prefixes", "next",
                     *names != NULL ? last : "");
}

static void list_begin(struct http_request *req)
{
    struct fake_target *t = http_user(req);
    const char *after = http_query(req, "start_after");
    pthread_mutex_lock(&t->lock);
    const char *const *names = t->names;
    pthread_mutex_unlock(&t->lock);
    if (names == NULL) {
        struct error err;
        error_set(&err, E_NOT_READY, "the index is not ready, says the test");
        http_reply_error(req, &err);
        return;
    }
    size_t limit = (size_t)strtoul(http_query(req, "limit"), NULL, 10);
    _cleanup_json_ json_t *page = names_page(names, after != NULL ? after : "", limit);
    http_reply_json(req, 200, page);
}

static void uploads_begin(struct http_request *req)
{
    struct fake_target *t = http_user(req);
    pthread_mutex_lock(&t->lock);
    const char *page = t->uploads;
    note_call(t, req);
    pthread_mutex_unlock(&t->lock);
    if (page == NULL) {
        struct error err;
        error_set(&err, E_IO, "a disk cannot be read, says the test");
        http_reply_error(req, &err);
        return;
    }
    http_reply_data(req, 200, "application/json", page, strlen(page));
}

static void state_body(struct http_request *req, const char *data, size_t len)
{
    _cleanup_json_ json_t *doc = NULL;
    struct error err = ERROR_INIT;
    if (json_parse(data, len, &doc, &err) != 0) {
        http_reply_error(req, &err);
        return;
    }
    _cleanup_json_ json_t *reply = json_pack("{s:O, s:O}", "term", json_object_get(doc, "term"),
                                             "version", json_object_get(doc, "version"));
    http_reply_json(req, 200, reply);
}

static void state_begin(struct http_request *req)
{
    http_collect_body(req, 1 << 20, state_body);
}

#define OBJECT "/v1/objects/{bucket}/{object...}"
#define ANYTHING HTTP_PARAMETERS({HTTP_ANY_PARAMETER, "what the proxy sends"})
static const struct http_route fake_routes[] = {
    {.name = "put",
     .method = HTTP_PUT,
     .pattern = OBJECT,
     .nets = NET_ALL,
     .right = RIGHT_NONE,
     .begin = put_begin,
     .query = ANYTHING},
    {.name = "get",
     .method = HTTP_GET,
     .pattern = OBJECT,
     .nets = NET_ALL,
     .right = RIGHT_NONE,
     .begin = get_begin,
     .query = ANYTHING},
    {.name = "head",
     .method = HTTP_HEAD,
     .pattern = OBJECT,
     .nets = NET_ALL,
     .right = RIGHT_NONE,
     .begin = get_begin,
     .query = ANYTHING},
    {.name = "delete",
     .method = HTTP_DELETE,
     .pattern = OBJECT,
     .nets = NET_ALL,
     .right = RIGHT_NONE,
     .begin = delete_begin,
     .query = ANYTHING},
    {.name = "list",
     .method = HTTP_GET,
     .pattern = "/v1/list/{bucket_id}",
     .nets = NET_ALL,
     .right = RIGHT_NONE,
     .begin = list_begin,
     .query = ANYTHING},
    {.name = "uploads",
     .method = HTTP_GET,
     .pattern = "/v1/uploads/{bucket_id}",
     .nets = NET_ALL,
     .right = RIGHT_NONE,
     .begin = uploads_begin,
     .query = ANYTHING},
    {.name = "state",
     .method = HTTP_PUT,
     .pattern = "/v1/cluster/state",
     .nets = NET_ALL,
     .right = RIGHT_NONE,
     .begin = state_begin},
    {.name = NULL},
};
static const struct http_route *const fake_tables[] = {fake_routes, NULL};

struct fake_target *fake_target_new(const char *id)
{
    static const char *const no_names[] = {NULL};
    struct fake_target *t = xcalloc(1, sizeof *t);
    snprintf(t->id, sizeof t->id, "%s", id);
    t->names = no_names;
    t->uploads = "{\"uploads\": [], \"more\": false}";
    pthread_mutex_init(&t->lock, NULL);
    const struct http_server_config config = {
        .node = t->id,
        .address = "127.0.0.1",
        .net = NET_PUBLIC,
        .threads = 2,
        .connections_max = 100,
        .connection_memory = 32 << 10,
        .idle_timeout_s = 60,
        .routes = fake_tables,
        .user = t,
    };
    struct error err = ERROR_INIT;
    if (http_server_new(&config, &t->server, &err) != 0)
        fail_msg("%s", err.message);
    t->url = xprintf("http://127.0.0.1:%u", http_server_port(t->server));
    return t;
}

void fake_target_free(struct fake_target *t)
{
    http_server_free(t->server);
    pthread_mutex_destroy(&t->lock);
    buf_done(&t->stored);
    buf_done(&t->headers);
    free(t->url);
    free(t);
}

const char *fake_target_id(const struct fake_target *t)
{
    return t->id;
}

const char *fake_target_url(const struct fake_target *t)
{
    return t->url;
}

void fake_target_mode(struct fake_target *t, enum fake_mode mode)
{
    pthread_mutex_lock(&t->lock);
    t->mode = mode;
    while (mode != FAKE_IS_SILENT && t->held_count > 0)
        http_reply_empty(t->held[--t->held_count], 204);
    pthread_mutex_unlock(&t->lock);
}

unsigned fake_target_held(struct fake_target *t)
{
    pthread_mutex_lock(&t->lock);
    unsigned held = t->held_count;
    pthread_mutex_unlock(&t->lock);
    return held;
}

void fake_target_names(struct fake_target *t, const char *const *names)
{
    pthread_mutex_lock(&t->lock);
    t->names = names;
    pthread_mutex_unlock(&t->lock);
}

void fake_target_uploads(struct fake_target *t, const char *page)
{
    pthread_mutex_lock(&t->lock);
    t->uploads = page;
    pthread_mutex_unlock(&t->lock);
}

uint64_t fake_target_received(struct fake_target *t)
{
    pthread_mutex_lock(&t->lock);
    uint64_t received = t->received;
    pthread_mutex_unlock(&t->lock);
    return received;
}

unsigned fake_target_busy(struct fake_target *t)
{
    pthread_mutex_lock(&t->lock);
    unsigned busy = t->busy;
    pthread_mutex_unlock(&t->lock);
    return busy;
}

unsigned fake_target_cut(struct fake_target *t)
{
    pthread_mutex_lock(&t->lock);
    unsigned cut = t->cut;
    pthread_mutex_unlock(&t->lock);
    return cut;
}

void fake_target_header(struct fake_target *t, const char *name, char out[static 64])
{
    char line[64];
    snprintf(line, sizeof line, "\n%s: ", name);
    out[0] = '\0';
    pthread_mutex_lock(&t->lock);
    _cleanup_free_ char *headers = xprintf("\n%s", buf_str(&t->headers));
    pthread_mutex_unlock(&t->lock);
    const char *at = strcasestr(headers, line);
    if (at != NULL) {
        at += strlen(line);
        snprintf(out, 64, "%.*s", (int)strcspn(at, "\n"), at);
    }
}

/* --- proxies ---------------------------------------------------------------------------------- */

/* "name=value" for each parameter, kept so that the proxy can start again. */
struct kept {
    struct test_proxy base;
    size_t count;
    char *settings[24];
};

static void keep(struct kept *k, char *setting)
{
    assert_true(k->count < sizeof k->settings / sizeof k->settings[0]);
    k->settings[k->count++] = setting;
}

void test_proxy_start(struct test_proxy *t)
{
    const struct kept *k = (const struct kept *)t;
    struct proxy_params params = {0};
    struct error err = ERROR_INIT;
    assert_int_equal(params_defaults(proxy_param_rows, &params, NULL), 0);
    for (size_t i = 0; i < k->count; i++) {
        char *equals = strchr(k->settings[i], '=');
        _cleanup_free_ char *name = xstrndup(k->settings[i], (size_t)(equals - k->settings[i]));
        if (params_set(proxy_param_rows, &params, name, equals + 1, "test", &err) != 0)
            fail_msg("%s", err.message);
    }
    int never[2];
    assert_int_equal(pipe(never), 0);
    if (proxy_new(&params, &t->proxy, &err) != 0 || proxy_start(t->proxy, &err) != 0 ||
        proxy_await(t->proxy, never[0], &err) != 0)
        fail_msg("%s", err.message);
    close(never[0]);
    close(never[1]);
}

struct test_proxy *test_proxy_new(const char *id, const char *join, const char *const *more)
{
    struct kept *k = xcalloc(1, sizeof *k);
    log_set_level(LOG_OFF);
    snprintf(k->base.dir, sizeof k->base.dir, "/tmp/dfc-proxy-XXXXXX");
    assert_non_null(mkdtemp(k->base.dir));
    keep(k, xprintf("id=%s", id));
    keep(k, xprintf("dir=%s", k->base.dir));
    keep(k, xprintf("join=%s", join != NULL ? join : ""));
    keep(k, xstrdup("keepalive_interval=50ms"));
    for (; more != NULL && *more != NULL; more++)
        keep(k, xstrdup(*more));
    test_proxy_start(&k->base);
    return &k->base;
}

void test_proxy_stop(struct test_proxy *t)
{
    proxy_free(t->proxy);
    t->proxy = NULL;
}

void test_proxy_free(struct test_proxy *t)
{
    struct kept *k = (struct kept *)t;
    proxy_free(t->proxy);
    file_remove_tree(t->dir, NULL);
    for (size_t i = 0; i < k->count; i++)
        free(k->settings[i]);
    free(k);
}

/* --- calls ------------------------------------------------------------------------------------ */

void test_client_open(struct test_client *c)
{
    const struct http_client_config config = {
        .connect_timeout_ms = 5000, .stall_timeout_ms = 20000, .connections_per_host_max = 16};
    assert_int_equal(loop_new("test-client", &c->loop, NULL), 0);
    assert_int_equal(http_client_new(c->loop, &config, &c->client, NULL), 0);
}

void test_client_close(struct test_client *c)
{
    http_client_free(c->client);
    loop_free(c->loop);
}

int test_call(struct test_client *c, enum http_method method, const char *base, const char *path,
              const char *body, char **reply)
{
    _cleanup_free_ char *url = xprintf("%s%s", base, path);
    const struct http_call call = {
        .method = method,
        .url = url,
        .body = body,
        .body_len = body != NULL ? strlen(body) : 0,
        .total_timeout_ms = 20000,
    };
    struct http_result r = {0};
    http_call_wait(c->client, &call, &r, NULL);
    if (r.code != 0)
        fail_msg("%s", r.err.message);
    if (reply != NULL)
        *reply = xstrdup(buf_str(&r.body));
    http_result_done(&r);
    return r.status;
}

json_t *test_json(struct test_client *c, enum http_method method, const char *base,
                  const char *path, const char *body, int status)
{
    _cleanup_free_ char *text = NULL;
    json_t *doc = NULL;
    int got = test_call(c, method, base, path, body, &text);
    if (got != status || json_parse(text, strlen(text), &doc, NULL) != 0)
        fail_msg("%s %s: %d %s", http_method_name(method), path, got, text);
    return doc;
}

void test_error(struct test_client *c, enum http_method method, const char *base, const char *path,
                const char *body, int status, const char *code, const char *words)
{
    _cleanup_json_ json_t *doc = test_json(c, method, base, path, body, status);
    const char *got = json_string_value(json_object_get(doc, "code"));
    const char *message = json_string_value(json_object_get(doc, "message"));
    if (got == NULL || strcmp(got, code) != 0 || message == NULL || strstr(message, words) == NULL)
        fail_msg("%s %s: %s '%s'", http_method_name(method), path, got, message);
    assert_int_equal(json_integer_value(json_object_get(doc, "status")), status);
}

int test_connect(const char *base)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
        .sin_port = htons((uint16_t)strtoul(strrchr(base, ':') + 1, NULL, 10)),
    };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

void test_send(int fd, const void *data, size_t len)
{
    for (const char *at = data; len > 0;) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
        assert_true(n > 0);
        at += n;
        len -= (size_t)n;
    }
}

char *test_read_all(int fd)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    ssize_t n;
    do {
        buf_reserve(&text, 4096);
        n = recv(fd, text.data + text.len, 4096, 0);
        assert_true(n >= 0);
        text.len += (size_t)n;
    } while (n > 0);
    buf_puts(&text, "");
    return buf_steal(&text);
}

void test_join(struct test_client *c, struct test_proxy *p, const struct fake_target *t)
{
    const struct node n = {
        .id = fake_target_id(t),
        .role = NODE_TARGET,
        .public_url = fake_target_url(t),
        .control_url = fake_target_url(t),
        .data_url = fake_target_url(t),
        .weight = 1024,
        .boot = "first",
    };
    _cleanup_json_ json_t *doc = node_to_json(&n);
    _cleanup_free_ char *body = json_text(doc);
    _cleanup_json_ json_t *state =
        test_json(c, HTTP_POST, p->proxy->control_url, "/v1/cluster/register", body, 200);
}
