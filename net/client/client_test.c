/* The client against a bare server: replies that are whole, cut, slow, too large, refused. */
#include "net/testing/client_fixture.h"

#include "common/jsonx.h"

/* --- scripts ---------------------------------------------------------------------------------- */

/* Sends the text it was given to every request, on one connection after the other. */
static void script_say(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    peer_read_request(c);
    peer_print(c, "%s", (const char *)p->ctx);
    peer_close(c);
}

static void call_to(void (*script)(struct peer *p), void *ctx, struct http_call call,
                    struct outcome *o)
{
    struct peer p;
    peer_start(&p, script, ctx);
    call.url = url_of(&p, "/x");
    call_whole(&call, o);
    peer_join(&p);
}

static void get_from(const char *reply, struct outcome *o)
{
    call_to(script_say, (void *)reply, (struct http_call){.method = HTTP_GET}, o);
}

/* --- whole replies ---------------------------------------------------------------------------- */

static void test_whole_reply(void **state)
{
    (void)state;
    struct outcome o;
    get_from("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: \"7\"\r\n\r\nhello", &o);
    assert_ended(&o, 0, NULL);
    assert_int_equal(o.status, 200);
    assert_string_equal(buf_str(&o.body), "hello");
    assert_string_equal(o.etag, "\"7\"");
    outcome_free(&o);
}

static void test_chunked_reply(void **state)
{
    (void)state;
    struct outcome o;
    get_from("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
             "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
             &o);
    assert_ended(&o, 0, NULL);
    assert_string_equal(buf_str(&o.body), "hello");
    outcome_free(&o);
}

static void test_interim_replies_are_passed_over(void **state)
{
    (void)state;
    struct outcome o;
    get_from("HTTP/1.1 100 Continue\r\nETag: \"no\"\r\n\r\n"
             "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",
             &o);
    assert_ended(&o, 0, NULL);
    assert_int_equal(o.status, 201);
    assert_string_equal(o.etag, "");
    outcome_free(&o);
}

static void script_requests(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    struct buf *seen = p->ctx;
    while (peer_read_request(c)) {
        buf_append(seen, c->head.data, strcspn(c->head.data, " "));
        buf_puts(seen, peer_saw(c, "Expect") ? " expect" : "");
        buf_puts(seen, peer_saw(c, "Content-Type") ? " type" : "");
        buf_puts(seen, peer_saw(c, "\r\nX-Request-Id: r-1\r\n") ? " id" : "");
        buf_puts(seen, peer_saw(c, "\r\nDfc-Test: yes\r\n") ? " header" : "");
        buf_puts(seen, peer_saw(c, "\r\nContent-Length: 0\r\n") ? " empty" : "");
        buf_printf(seen, " '%s'\n", buf_str(&c->body));
        peer_print(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s",
                   strncmp(c->head.data, "HEAD", 4) == 0 ? 77 : 0, "");
    }
    peer_close(c);
}

/* One connection carries all of them, one after the other. */
static void test_requests_on_one_connection(void **state)
{
    (void)state;
    static const char *const headers[] = {"Dfc-Test: yes", NULL};
    struct buf seen = BUF_INIT;
    struct peer p;
    peer_start(&p, script_requests, &seen);
    const struct http_call calls[] = {
        {.method = HTTP_GET, .request_id = "r-1"},
        {.method = HTTP_HEAD, .headers = headers},
        {.method = HTTP_PUT, .body = "bytes", .body_len = 5},
        {.method = HTTP_PUT, .body = "stays", .body_len = 5, .body_stays = true},
        {.method = HTTP_PUT},
        {.method = HTTP_POST, .body = "", .body_len = 0},
        {.method = HTTP_DELETE},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct http_call call = calls[i];
        struct outcome o;
        call.url = url_of(&p, "/x");
        call_whole(&call, &o);
        assert_ended(&o, 0, NULL);
        outcome_free(&o);
    }
    http_client_free(steal(fx.client)); /* closes the connection, which ends the script */
    peer_join(&p);
    assert_int_equal(p.accepted, 1);
    assert_string_equal(buf_str(&seen),
                        "GET id ''\nHEAD header ''\nPUT 'bytes'\nPUT 'stays'\nPUT empty ''\n"
                        "POST empty ''\nDELETE ''\n");
    buf_done(&seen);
}

/* The server gives up the kept connection: the next call takes a new one, body and all. */
static void script_closes_after_each(struct peer *p)
{
    for (int i = 0; i < 3; i++) {
        struct peer_conn *c = peer_accept(p);
        peer_read_request(c);
        peer_print(c, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", c->body.len,
                   buf_str(&c->body));
        peer_close(c);
    }
}

static void test_dead_kept_connection(void **state)
{
    (void)state;
    struct peer p;
    peer_start(&p, script_closes_after_each, NULL);
    for (int i = 0; i < 3; i++) {
        struct http_call call = {
            .method = HTTP_POST, .url = url_of(&p, "/x"), .body = "abc", .body_len = 3};
        struct outcome o;
        call_whole(&call, &o);
        assert_ended(&o, 0, NULL);
        assert_string_equal(buf_str(&o.body), "abc");
        outcome_free(&o);
    }
    peer_join(&p);
    assert_int_equal(p.accepted, 3);
}

struct head_seen {
    struct outcome outcome; /* first: the same argument goes to done() */
    unsigned calls;
    int status;
    int64_t length;
    char type[40];
    char all[200];
};

static void note_header(void *ctx, const char *name, const char *value)
{
    struct head_seen *h = ctx;
    size_t used = strlen(h->all);
    snprintf(h->all + used, sizeof h->all - used, "%s=%s;", name, value);
}

static void note_head(void *arg, const struct http_head *head)
{
    struct head_seen *h = arg;
    const char *type = head->header(head, "content-type");
    h->calls++;
    h->status = head->status;
    h->length = head->content_length;
    snprintf(h->type, sizeof h->type, "%s", type != NULL ? type : "");
    assert_null(head->header(head, "Dfc-Nothing"));
    head->each_header(head, note_header, h);
}

static void test_head_comes_first_and_once(void **state)
{
    (void)state;
    struct head_seen h = {0};
    call_to(script_say,
            (void *)"HTTP/1.1 100 Continue\r\n\r\n"
                    "HTTP/1.1 404 Not Found\r\nContent-Type: text/x\r\nContent-Length: 2\r\n\r\nno",
            (struct http_call){.method = HTTP_GET, .on_head = note_head}, &h.outcome);
    assert_ended(&h.outcome, E_NET, "404");
    assert_int_equal(h.calls, 1);
    assert_int_equal(h.status, 404);
    assert_int_equal(h.length, 2);
    assert_string_equal(h.type, "text/x");
    assert_string_equal(h.all, "Content-Type=text/x;Content-Length=2;");
    outcome_free(&h.outcome);
}

static void test_empty_headers(void **state)
{
    (void)state;
    struct head_seen h = {0};
    call_to(script_say,
            (void *)"HTTP/1.1 200 OK\r\nContent-Type: \r\nA:\r\nB: \t \r\nC: c \r\n"
                    "Content-Length: 2\r\n\r\nok",
            (struct http_call){.method = HTTP_GET, .on_head = note_head}, &h.outcome);
    assert_ended(&h.outcome, 0, NULL);
    assert_string_equal(h.type, "");
    assert_string_equal(h.all, "Content-Type=;A=;B=;C=c;Content-Length=2;");
    outcome_free(&h.outcome);
}

/* --- cut replies ------------------------------------------------------------------------------ */

struct cut {
    const char *reply;
    size_t len;
};

static void script_cut(struct peer *p)
{
    const struct cut *cut = p->ctx;
    struct peer_conn *c = peer_accept(p);
    peer_read_request(c);
    peer_send(c, cut->reply, cut->len);
    peer_close(c);
}

/* No beginning of a reply passes for the whole.  All but the last `spare` bytes say everything:
 * they may do for curl. */
static void assert_no_cut_looks_whole(const char *reply, size_t spare)
{
    size_t whole = strlen(reply);
    for (size_t len = 1; len <= whole; len++) {
        struct cut cut = {reply, len};
        struct outcome o;
        call_to(script_cut, &cut, (struct http_call){.method = HTTP_GET}, &o);
        bool enough = len == whole || (len >= whole - spare && o.code == 0);
        if (o.code != (enough ? 0 : E_NET))
            fail_msg("%zu bytes: %s %s", len, error_name(o.code), o.err.message);
        outcome_free(&o);
    }
}

static void test_cut_at_any_byte(void **state)
{
    (void)state;
    static const char fixed[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    static const char chunks[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                 "5\r\nhello\r\n0\r\n\r\n";
    assert_no_cut_looks_whole(fixed, 0);
    assert_no_cut_looks_whole(chunks, 1); /* curl 7.88 does without the LF of the last line */
}
/* The end of the connection is no end of a body that says nothing of its length. */
static void test_unframed_reply(void **state)
{
    (void)state;
    struct outcome o;
    get_from("HTTP/1.1 200 OK\r\n\r\nhello", &o);
    assert_ended(&o, E_NET, "where it ends");
    outcome_free(&o);
    get_from("HTTP/1.1 304 Not Modified\r\n\r\n", &o);
    assert_ended(&o, E_NET, "304");
    outcome_free(&o);
    get_from("HTTP/1.1 204 No Content\r\n\r\n", &o);
    assert_ended(&o, 0, NULL);
}

/* A server that closes without a word is asked once more, for a kept connection could have died;
 * this one was new. */
static void test_closed_without_a_word(void **state)
{
    (void)state;
    struct cut cut = {"", 0};
    struct outcome o;
    call_to(script_cut, &cut, (struct http_call){.method = HTTP_GET}, &o);
    assert_ended(&o, E_NET, "/x");
    outcome_free(&o);
}

static void test_garbage(void **state)
{
    (void)state;
    struct outcome o;
    get_from("SSH-2.0-OpenSSH_9.2\r\n", &o);
    assert_ended(&o, E_NET, NULL);
    outcome_free(&o);
    get_from("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", &o);
    assert_ended(&o, E_NET, NULL);
    outcome_free(&o);
    get_from("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nhello\r\n", &o);
    assert_ended(&o, E_NET, NULL);
    outcome_free(&o);
}

static void test_nobody_listens(void **state)
{
    (void)state;
    struct outcome o;
    struct peer p;
    peer_start(&p, script_say, (void *)"HTTP/1.1 204 No Content\r\n\r\n");
    struct http_call call = {.method = HTTP_GET, .url = url_of(&p, "/x")};
    call_whole(&call, &o);
    assert_ended(&o, 0, NULL);
    peer_join(&p);
    call_whole(&call, &o);
    assert_ended(&o, E_NET, "GET http://127.0.0.1:");
}

static void test_bad_url(void **state)
{
    (void)state;
    struct outcome o;
    call_whole(&(struct http_call){.method = HTTP_GET, .url = "gopher://127.0.0.1/"}, &o);
    assert_ended(&o, E_NET, "gopher");
    call_whole(&(struct http_call){.method = HTTP_GET, .url = "http://127.0.0.1:99999/"}, &o);
    assert_ended(&o, E_NET, NULL);
}

/* --- time ------------------------------------------------------------------------------------- */

static void script_silence(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    peer_read_request(c);
    peer_print(c, "%s", (const char *)p->ctx);
    assert_false(peer_read_head(c)); /* the client gives up */
    peer_close(c);
}

static void test_silent_server(void **state)
{
    (void)state;
    struct outcome o;
    call_to(script_silence, (void *)"", (struct http_call){.method = HTTP_GET}, &o);
    assert_ended(&o, E_TIMEOUT, "/x");
    call_to(script_silence, (void *)"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
            (struct http_call){.method = HTTP_GET}, &o);
    assert_ended(&o, E_TIMEOUT, "stall");
    outcome_free(&o);
}

static void test_total_timeout(void **state)
{
    (void)state;
    struct outcome o;
    call_to(script_silence, (void *)"",
            (struct http_call){.method = HTTP_GET,
                               .total_timeout_ms = 150,
                               .stall_timeout_ms = HTTP_NO_STALL_TIMEOUT},
            &o);
    assert_ended(&o, E_TIMEOUT, "/x");
}

/* Slow is not stalled: the reply takes longer than the stall timeout, but bytes keep coming. */
static void script_trickle(struct peer *p)
{
    static const struct timespec pause = {.tv_nsec = STALL_MS * 1000000L / 4};
    struct peer_conn *c = peer_accept(p);
    peer_read_request(c);
    peer_print(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
    for (int i = 0; i < 9; i++) {
        peer_print(c, "%d", i);
        nanosleep(&pause, NULL);
    }
    peer_close(c);
}

static void test_slow_trickle(void **state)
{
    (void)state;
    struct outcome o;
    call_to(script_trickle, NULL, (struct http_call){.method = HTTP_GET}, &o);
    assert_ended(&o, 0, NULL);
    assert_string_equal(buf_str(&o.body), "012345678");
    outcome_free(&o);
}

/* --- sizes ------------------------------------------------------------------------------------ */

static void test_reply_max(void **state)
{
    (void)state;
    const struct http_call call = {.method = HTTP_GET, .reply_max = 5};
    struct outcome o;
    call_to(script_say, (void *)"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", call, &o);
    assert_ended(&o, 0, NULL);
    outcome_free(&o);
    call_to(script_say, (void *)"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello!", call, &o);
    assert_ended(&o, E_TOO_LARGE, "/x");
    outcome_free(&o);
    /* What is wrong is told, however long the telling. */
    call_to(script_say, (void *)"HTTP/1.1 404 Not Found\r\nContent-Length: 6\r\n\r\nhello!", call,
            &o);
    assert_ended(&o, E_NET, "404");
    outcome_free(&o);
    call_to(script_say,
            (void *)"HTTP/1.1 404 Not Found\r\nContent-Length: 55\r\n\r\n"
                    "{\"code\":\"object_not_found\",\"message\":\"it is not there\"}",
            call, &o);
    assert_ended(&o, E_OBJECT_NOT_FOUND, "it is not there");
    outcome_free(&o);
}

/* --- errors of our own nodes ------------------------------------------------------------------ */

static void assert_error_of(const char *body, int status, int code, const char *words)
{
    _cleanup_free_ char *reply =
        xprintf("HTTP/1.1 %d Status\r\nContent-Length: %zu\r\n\r\n%s", status, strlen(body), body);
    struct outcome o;
    get_from(reply, &o);
    assert_ended(&o, code, words);
    outcome_free(&o);
}

static void test_error_documents(void **state)
{
    (void)state;
    assert_error_of("{\"status\": 404, \"code\": \"job_not_found\", \"message\": \"no job\","
                    " \"node\": \"t3\"}",
                    404, E_JOB_NOT_FOUND, "t3: no job");
    assert_error_of("{\"code\": \"overloaded\", \"message\": \"later\"}", 503, E_OVERLOAD,
                    "peer: later");
    assert_error_of("{\"code\": \"from_the_future\", \"message\": \"x\"}", 500, E_NET, "500");
    assert_error_of("{\"code\": 7, \"message\": []}", 500, E_NET, "500");
    assert_error_of("[1, 2", 502, E_NET, "502");
    assert_error_of("<html>", 301, E_NET, "301");
    assert_error_of("", 404, E_NET, "404");
}

static void test_json_call(void **state)
{
    (void)state;
    struct peer p;
    struct error err = ERROR_INIT;
    _cleanup_json_ json_t *in = json_pack("{s:i}", "a", 1);
    _cleanup_json_ json_t *out = NULL;
    peer_start(&p, script_closes_after_each, NULL);
    for (int i = 0; i < 2; i++) {
        json_decref(steal(out));
        assert_int_equal(http_json_wait(fx.client, HTTP_ANY_NODE, HTTP_POST, url_of(&p, "/x"), in,
                                        5000, &out, &err),
                         0);
        assert_true(json_equal(in, out));
    }
    json_t *none = NULL;
    assert_int_equal(http_json_wait(fx.client, HTTP_ANY_NODE, HTTP_POST, url_of(&p, "/x"), NULL,
                                    5000, &none, &err),
                     E_JSON); /* it answers with nothing */
    peer_join(&p);
}

/* --- many at once ----------------------------------------------------------------------------- */

enum { CALLERS = 8, CALLS = 25 };

static void *peer_serve_one(void *arg)
{
    struct peer_conn *c = arg;
    while (peer_read_request(c))
        peer_print(c, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", c->body.len,
                   buf_str(&c->body));
    peer_close(c);
    return NULL;
}

/* A thread for each connection that the client opens. */
static void script_many(struct peer *p)
{
    pthread_t threads[CALLERS * CALLS];
    size_t n = 0;
    for (struct peer_conn *c; (c = peer_accept(p)) != NULL; n++)
        pthread_create(&threads[n], NULL, peer_serve_one, c);
    while (n > 0)
        pthread_join(threads[--n], NULL);
}

struct caller {
    const char *url;
    unsigned good;
    struct error err;
};

static void *caller_main(void *arg)
{
    struct caller *me = arg;
    for (int i = 0; i < CALLS; i++) {
        char text[40];
        snprintf(text, sizeof text, "%p %d", arg, i);
        const struct http_call call = {
            .method = HTTP_POST, .url = me->url, .body = text, .body_len = strlen(text)};
        struct http_result r = {0};
        if (http_call_wait(fx.client, &call, &r, &me->err) == 0 &&
            strcmp(buf_str(&r.body), text) == 0)
            me->good++;
        http_result_done(&r);
    }
    return NULL;
}

/* Every caller gets its own reply. */
static void test_many_callers(void **state)
{
    (void)state;
    struct peer p;
    peer_start(&p, script_many, NULL);
    const char *url = url_of(&p, "/x");
    struct caller callers[CALLERS];
    pthread_t threads[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){.url = url};
        assert_int_equal(pthread_create(&threads[i], NULL, caller_main, &callers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++)
        pthread_join(threads[i], NULL);
    http_client_free(steal(fx.client)); /* closes the connections */
    peer_stop(&p);
    peer_join(&p);
    for (int i = 0; i < CALLERS; i++) {
        if (callers[i].good != CALLS)
            fail_msg("%u good calls: %s", callers[i].good, callers[i].err.message);
    }
}

/* --- the end ---------------------------------------------------------------------------------- */

static void test_free_ends_running_calls(void **state)
{
    (void)state;
    struct outcome o[3];
    struct peer p[3];
    for (int i = 0; i < 3; i++) {
        outcome_init(&o[i]);
        peer_start(&p[i], script_silence, (void *)"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nh");
        http_call_start(fx.client,
                        &(struct http_call){.method = HTTP_GET, .url = url_of(&p[i], "/x")},
                        outcome_done, &o[i]);
    }
    while (p[0].accepted + p[1].accepted + p[2].accepted < 3)
        sched_yield();
    http_client_free(steal(fx.client));
    for (int i = 0; i < 3; i++) {
        assert_true(o[i].done); /* without waiting */
        assert_ended(&o[i], E_CANCELLED, "stopping");
        outcome_free(&o[i]);
    }
    for (int i = 0; i < 3; i++)
        peer_join(&p[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        client_test(test_whole_reply),
        client_test(test_chunked_reply),
        client_test(test_interim_replies_are_passed_over),
        client_test(test_requests_on_one_connection),
        client_test(test_dead_kept_connection),
        client_test(test_head_comes_first_and_once),
        client_test(test_empty_headers),
        client_test(test_cut_at_any_byte),
        client_test(test_unframed_reply),
        client_test(test_closed_without_a_word),
        client_test(test_garbage),
        client_test(test_nobody_listens),
        client_test(test_bad_url),
        client_test(test_silent_server),
        client_test(test_total_timeout),
        client_test(test_slow_trickle),
        client_test(test_reply_max),
        client_test(test_error_documents),
        client_test(test_json_call),
        client_test(test_many_callers),
        client_test(test_free_ends_running_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
