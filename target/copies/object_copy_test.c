/* What a call to the owner's target comes to, against a bare server in that target's place. */
#include "target/copies/object_copy.h"

#include "net/testing/client_fixture.h"
#include "target/node/target.h"

/* ctx: the reply to the one request. */
static void answer(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    peer_read_request(c);
    peer_print(c, "%s", (const char *)p->ctx);
    peer_close(c);
}

static int feed(void *ctx, ec_take_fn *take, void *take_ctx, struct error *err)
{
    return take(take_ctx, ctx, strlen(ctx), err);
}

static int call(const char *text, bool streams, struct copier_reply *reply, struct error *err)
{
    struct target t = {.data_client = fx.client};
    struct object_copier *c = object_copier_new(&t);
    struct peer p;
    peer_start(&p, answer, (void *)(uintptr_t)text);
    struct http_call put = {
        .method = HTTP_PUT, .url = url_of(&p, "/v1/objects/b/o"), .upload_length = 5, .once = true};
    char bytes[] = "bytes";
    if (!streams) {
        put.body = bytes;
        put.body_len = strlen(bytes);
    }
    const int code = streams ? object_copier_stream(c, &put, feed, bytes, reply, err)
                             : object_copier_call(c, &put, reply, err);
    peer_join(&p);
    object_copier_free(c);
    return code;
}

static const struct {
    const char *reply;
    int code, status;
} rows[] = {
    {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", 0, 200},
    {"HTTP/1.1 304 Not Modified\r\n\r\n", E_NOT_MODIFIED, 304},
    /* Whoever waits for the call may try again: api/call.c does so with 409 `stale_map`. */
    {"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\n"
     "Content-Length: 0\r\n\r\n",
     E_STALE_MAP, 307},
    {"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n", E_NET, 500},
};

static void test_what_a_reply_means(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        struct copier_reply reply = {.status = 0};
        struct error err = ERROR_INIT;
        assert_int_equal(call(rows[i / 2].reply, i % 2 == 1, &reply, &err), rows[i / 2].code);
        assert_int_equal(err.code, rows[i / 2].code);
        assert_int_equal(reply.status, rows[i / 2].status);
        buf_done(&reply.body);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {client_test(test_what_a_reply_means)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
