/* The guard of a server over real connections: which proof makes whom, and what they may do. */
#include "access/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "access/redirect_proof.h"
#include "access/signed_url.h"
#include "access/token.h"
#include "cluster/command/command.h"
#include "cluster/documents/state_holder.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "net/testing/wire.h"

#define ANN "9f0c0000000000000000000000000001"
#define BEN "9f0c0000000000000000000000000002"
#define CAT "9f0c0000000000000000000000000003"
#define KEY(n) "DFC4JAAAAAAAAAAAAAA" n
#define GRANTS "\"grants\": [{\"rights\": [\"read\"], \"bucket\": \"b\"}]"

enum { MINUTE_MS = 60000 };

/* Answers with the actor. */
static void hello_begin(struct http_request *req)
{
    const char *name = http_actor(req)->name;
    http_reply_data(req, 200, "text/plain", name, strlen(name));
}

/* Answers with the query of a redirect for bucket 7. */
static void proof_begin(struct http_request *req)
{
    _cleanup_(buf_done)
    struct buf query = BUF_INIT;
    buf_puts(&query, "?dfcb=7");
    guard_put_proof(req, 7, NULL, &query);
    http_reply_data(req, 200, "text/plain", query.data, query.len);
}

static const struct http_route routes[] = {
    {.name = "get",
     .method = HTTP_GET,
     .pattern = "/o/{bucket}/{object...}",
     .nets = NET_PUBLIC,
     .right = RIGHT_READ,
     .query = HTTP_PARAMETERS({"dfcb", "bucket"}, {"dfca", "proof"}),
     .begin = hello_begin},
    {.name = "signed",
     .method = HTTP_GET,
     .pattern = "/u/{bucket}/{object...}",
     .nets = NET_PUBLIC,
     .right = RIGHT_READ,
     .query = HTTP_PARAMETERS({"dfcu", "proof"}),
     .begin = hello_begin},
    {.name = "part",
     .method = HTTP_GET,
     .pattern = "/p/{bucket}/{object...}",
     .nets = NET_PUBLIC,
     .right = RIGHT_READ,
     .signs = UPLOAD_SIGNS("GET"),
     .query = HTTP_PARAMETERS({"dfcb", "bucket"}, {"dfca", "proof"}),
     .begin = proof_begin},
    {.name = "put",
     .method = HTTP_PUT,
     .pattern = "/o/{bucket}/{object...}",
     .nets = NET_PUBLIC,
     .right = RIGHT_WRITE,
     .begin = hello_begin},
    {.name = NULL},
};
static const struct http_route *const tables[] = {routes, NULL};

static struct {
    char key_file[32];
    struct state_holder *state;
    struct guard *guard;
    struct http_server *server;
    struct wire wire;
} fx;

static void apply(struct command cmd, const char *patch)
{
    _cleanup_json_ json_t *doc = json_loads(patch, 0, NULL);
    const struct cluster_state *now = state_current(fx.state), *next;
    struct error err = ERROR_INIT;
    cmd.patch = doc;
    if (command_apply(now, &cmd, &next, &err) != 0)
        fail_msg("%s", err.message);
    assert_true(state_advance(fx.state, next));
    state_unref(next);
    state_unref(now);
}

static void write_key(void)
{
    static const char key[] = "0123456789abcdef0123456789abcdef-1\n";
    snprintf(fx.key_file, sizeof fx.key_file, "/tmp/dfc-guard-XXXXXX");
    int fd = mkstemp(fx.key_file);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, key, sizeof key - 1), sizeof key - 1);
    close(fd);
}

static int setup(void **state)
{
    (void)state;
    write_key();
    fx.state = state_holder_new(state_new("c-1"));
    apply((struct command){.kind = CMD_USER_ADD, .text = ANN}, "{\"name\": \"ann\", " GRANTS "}");
    apply((struct command){.kind = CMD_USER_ADD, .text = BEN}, "{\"name\": \"ben\"}");
    const struct guard_config guard = {
        .key_file = fx.key_file, .state = fx.state, .redirect_ttl_ms = MINUTE_MS};
    assert_int_equal(guard_new(&guard, &fx.guard, NULL), 0);
    const struct http_server_config config = {.node = "n1",
                                              .address = "127.0.0.1",
                                              .net = NET_PUBLIC,
                                              .threads = 1,
                                              .connections_max = 16,
                                              .connection_memory = 32768,
                                              .idle_timeout_s = 60,
                                              .routes = tables,
                                              .guard = guard_hook(fx.guard)};
    assert_int_equal(http_server_new(&config, &fx.server, NULL), 0);
    fx.wire = wire_open(http_server_port(fx.server));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    wire_close(&fx.wire);
    http_server_free(fx.server);
    guard_free(fx.guard);
    state_holder_free(fx.state);
    unlink(fx.key_file);
    return 0;
}

/* Of a user, got with an access key or none, issued so long ago, good for a minute from then. */
static void put_token_of(const char *user, const char *access, uint64_t age_ms, struct buf *out)
{
    struct token t = {.issued_ms = (uint64_t)clock_wall_ms() - age_ms};
    struct proof_keys *keys = guard_keys(fx.guard);
    t.expires_ms = t.issued_ms + MINUTE_MS;
    snprintf(t.user, sizeof t.user, "%s", user);
    snprintf(t.access, sizeof t.access, "%s", access);
    token_put(keys, &t, out);
    proof_keys_unref(keys);
}

static void put_token(const char *user, uint64_t age_ms, struct buf *out)
{
    put_token_of(user, "", age_ms, out);
}

/* 200: `word` is the actor.  401: the word of the challenge.  Else the error's code. */
static void expect(int status, const char *word)
{
    struct wire_reply r;
    wire_read(&fx.wire, false, &r);
    if (r.status != status)
        fail_msg("%d: %s", r.status, buf_str(&r.body));
    const char *text = status == 401 ? wire_header(&r, "WWW-Authenticate") : buf_str(&r.body);
    if (strstr(text, word) == NULL)
        fail_msg("'%s' is not in '%s'", word, text);
    wire_reply_done(&r);
}

static void call(const char *method, const char *target, const char *token)
{
    wire_print(&fx.wire, "%s %s HTTP/1.1\r\nHost: x\r\n%s%s\r\n\r\n", method, target,
               token != NULL ? "Authorization: Bearer " : "X: ", token != NULL ? token : "y");
}

static void test_a_token_makes_its_user(void **state)
{
    (void)state;
    _cleanup_(buf_done)
    struct buf ann = BUF_INIT, ben = BUF_INIT, old = BUF_INIT;
    put_token(ANN, 0, &ann);
    put_token(BEN, 0, &ben);
    put_token(ANN, MINUTE_MS + 1, &old);
    call("GET", "/o/b/x", buf_str(&ann));
    expect(200, "ann");
    call("PUT", "/o/b/x", buf_str(&ann));
    expect(403, "access_denied");
    call("GET", "/o/b/x", buf_str(&ben));
    expect(403, "access_denied");
    call("GET", "/o/b/x", NULL);
    expect(401, "missing");
    call("GET", "/o/b/x", "dfc1.x.y");
    expect(401, "invalid");
    call("GET", "/o/b/x", buf_str(&old));
    expect(401, "expired");
    buf_done(&ben);
    buf_done(&old);
}

static void test_a_token_ends_with_its_access_key(void **state)
{
    (void)state;
    static const struct access_key keys[] = {
        {.access = KEY("1"), .secret = "s"},
        {.access = KEY("2"), .secret = "s"},
        {.access = KEY("3"), .secret = "s", .expires_ms = 1},
    };
    _cleanup_(buf_done)
    struct buf first = BUF_INIT;
    _cleanup_(buf_done)
    struct buf second = BUF_INIT;
    _cleanup_(buf_done)
    struct buf expired = BUF_INIT;
    _cleanup_(buf_done)
    struct buf bens = BUF_INIT;
    for (int i = 0; i < 2; i++)
        apply((struct command){.kind = CMD_KEY_ADD, .name = "ann", .key = &keys[i]}, "{}");
    apply((struct command){.kind = CMD_KEY_ADD, .name = "ben", .key = &keys[2]}, "{}");
    put_token_of(ANN, KEY("1"), 0, &first);
    put_token_of(ANN, KEY("2"), 0, &second);
    put_token_of(BEN, KEY("3"), 0, &expired);
    put_token_of(ANN, KEY("3"), 0, &bens);
    call("GET", "/o/b/x", buf_str(&first));
    expect(200, "ann");
    apply((struct command){.kind = CMD_KEY_REMOVE, .name = "ann", .text = KEY("1")}, "{}");
    call("GET", "/o/b/x", buf_str(&first));
    expect(401, "expired");
    call("GET", "/o/b/x", buf_str(&second));
    expect(200, "ann");
    call("GET", "/o/b/x", buf_str(&expired));
    expect(401, "expired");
    call("GET", "/o/b/x", buf_str(&bens));
    expect(401, "expired");
}

static void test_a_token_ends_with_its_password(void **state)
{
    (void)state;
    static const char *const hashes[] = {"scrypt:15:8:1:000102030405060708090a0b0c0d0e0f:00",
                                         "scrypt:15:8:1:100102030405060708090a0b0c0d0e0f:00"};
    _cleanup_(buf_done)
    struct buf by_password = BUF_INIT;
    _cleanup_(buf_done)
    struct buf by_key = BUF_INIT;
    const struct access_key key = {.access = KEY("1"), .secret = "s"};
    apply((struct command){.kind = CMD_USER_ADD, .text = CAT, .key = &key},
          "{\"name\": \"cat\", \"kind\": \"person\", " GRANTS "}");
    apply((struct command){.kind = CMD_PASSWORD, .name = "cat", .text = hashes[0]}, "{}");
    put_token_of(CAT, "p0001020304050607080", 0, &by_password);
    put_token_of(CAT, KEY("1"), 0, &by_key);
    call("GET", "/o/b/x", buf_str(&by_password));
    expect(200, "cat");
    apply((struct command){.kind = CMD_PASSWORD, .name = "cat", .text = hashes[1]}, "{}");
    call("GET", "/o/b/x", buf_str(&by_password)); /* though it is not older than the password */
    expect(401, "expired");
    call("GET", "/o/b/x", buf_str(&by_key));
    expect(200, "cat");
}

static void test_a_user_who_is_disabled_is_nobody(void **state)
{
    (void)state;
    _cleanup_(buf_done)
    struct buf ann = BUF_INIT;
    put_token(ANN, 0, &ann);
    apply((struct command){.kind = CMD_USER_CHANGE, .name = "ann"}, "{\"enabled\": false}");
    call("GET", "/o/b/x", buf_str(&ann));
    expect(401, "invalid");
}

/* "/o/b/OBJECT?dfcb=7&dfca=…" with a proof for object x and user ann. */
static void put_redirect(const char *object, struct buf *url)
{
    const struct redirect_call x = {.reads = true, .method = "GET", .bucket_id = 7, .object = "x"};
    struct proof_keys *keys = guard_keys(fx.guard);
    buf_printf(url, "/o/b/%s?dfcb=7&dfca=", object);
    redirect_proof_put(keys, ANN, (uint64_t)clock_wall_ms() + MINUTE_MS, &x, url);
    proof_keys_unref(keys);
}

static void test_a_redirect_is_for_its_call(void **state)
{
    (void)state;
    _cleanup_(buf_done)
    struct buf right = BUF_INIT, wrong = BUF_INIT, ben = BUF_INIT;
    put_redirect("x", &right);
    put_redirect("y", &wrong);
    put_token(BEN, 0, &ben);
    call("GET", buf_str(&right), NULL);
    expect(200, "ann");
    call("GET", buf_str(&wrong), NULL);
    expect(403, "access_denied");
    call("GET", buf_str(&right), buf_str(&ben)); /* what a proxy has decided counts first … */
    expect(200, "ann");
    call("GET", buf_str(&wrong), buf_str(&ben)); /* … and where it does not hold, the token */
    expect(403, "'ben' lacks");
    buf_done(&wrong);
    buf_done(&ben);
}

/* Two routes have the same method, and objects of one name. */
static void test_a_redirect_is_for_what_its_route_signs(void **state)
{
    (void)state;
    _cleanup_(buf_done)
    struct buf ann = BUF_INIT, object = BUF_INIT, part = BUF_INIT;
    struct wire_reply r;
    put_token(ANN, 0, &ann);
    call("GET", "/p/b/x", buf_str(&ann));
    wire_read(&fx.wire, false, &r);
    const char *query = buf_str(&r.body);
    buf_printf(&part, "/p/b/x%s", query);
    buf_printf(&object, "/o/b/x%s", query);
    call("GET", buf_str(&part), NULL);
    expect(200, query); /* it is passed on */
    call("GET", buf_str(&object), NULL);
    expect(403, "access_denied");
    wire_reply_done(&r);
    buf_clear(&object);
    put_redirect("x", &object);
    buf_clear(&part);
    buf_printf(&part, "/p%s", buf_str(&object) + strlen("/o"));
    call("GET", buf_str(&object), NULL);
    expect(200, "ann");
    call("GET", buf_str(&part), NULL);
    expect(403, "access_denied");
}

/* "/u/b/OBJECT?dfcu=…" for object x, in the name of a user, issued so long ago. */
static void put_url(const char *object, const char *user, uint64_t age_ms, struct buf *url)
{
    _cleanup_state_ const struct cluster_state *s = state_current(fx.state);
    struct redirect_call x = {.reads = true, .method = "GET", .object = "x"};
    x.bucket_id = bmd_bucket(&s->bmd, "b")->id;
    struct token t = {.issued_ms = (uint64_t)clock_wall_ms() - age_ms};
    struct proof_keys *keys = guard_keys(fx.guard);
    t.expires_ms = t.issued_ms + MINUTE_MS;
    snprintf(t.user, sizeof t.user, "%s", user);
    buf_clear(url);
    buf_printf(url, "/u/b/%s?dfcu=", object);
    signed_url_put(keys, &t, &x, url);
    proof_keys_unref(keys);
}

/* Its user's rights are looked up as those of a token's. */
static void test_a_signed_url_is_its_user_for_one_call(void **state)
{
    (void)state;
    _cleanup_(buf_done)
    struct buf url = BUF_INIT;
    apply((struct command){.kind = CMD_BUCKET_CREATE, .name = "b", .props = &bucket_props_default},
          "{}");
    put_url("x", ANN, 0, &url);
    call("GET", buf_str(&url), NULL);
    expect(200, "ann");
    put_url("y", ANN, 0, &url);
    call("GET", buf_str(&url), NULL);
    expect(403, "access_denied");
    put_url("x", BEN, 0, &url);
    call("GET", buf_str(&url), NULL);
    expect(403, "'ben' lacks");
    put_url("x", ANN, MINUTE_MS + 1, &url);
    call("GET", buf_str(&url), NULL);
    expect(401, "expired");
    put_url("x", ANN, 0, &url);
    apply((struct command){.kind = CMD_USER_CHANGE, .name = "ann"}, "{\"enabled\": false}");
    call("GET", buf_str(&url), NULL);
    expect(401, "invalid");
}

static void test_a_user_has_a_rate(void **state)
{
    (void)state;
    _cleanup_(buf_done)
    struct buf ann = BUF_INIT;
    struct wire_reply r;
    put_token(ANN, 0, &ann);
    apply((struct command){.kind = CMD_USER_CHANGE, .name = "ann"}, "{\"rate\": {\"bytes\": 1}}");
    call("GET", "/o/b/x", buf_str(&ann));
    expect(200, "ann");
    call("GET", "/o/b/x", buf_str(&ann)); /* the reply before has cost some seconds */
    wire_read(&fx.wire, false, &r);
    assert_int_equal(r.status, 429);
    assert_non_null(strstr(buf_str(&r.body), "rate_limited"));
    assert_string_not_equal(wire_header(&r, "Retry-After"), "0");
    wire_reply_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_token_makes_its_user, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_token_ends_with_its_access_key, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_token_ends_with_its_password, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_user_who_is_disabled_is_nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_redirect_is_for_its_call, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_redirect_is_for_what_its_route_signs, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_signed_url_is_its_user_for_one_call, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_user_has_a_rate, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
