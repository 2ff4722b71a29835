/* The client and the connections that it keeps: they die under a call. */
#include "net/testing/client_fixture.h"

/* A connection is kept, and not taken by what must not be repeated when it dies. */
static void script_keeps_one_and_takes_another(struct peer *p)
{
    struct peer_conn *kept = peer_accept(p);
    peer_read_request(kept);
    peer_print(kept, "HTTP/1.1 204 No Content\r\n\r\n");
    struct peer_conn *other = peer_accept(p);
    peer_read_request(other);
    peer_print(other, "HTTP/1.1 204 No Content\r\n\r\n");
    peer_close(other);
    peer_close(kept);
}

static void test_once(void **state)
{
    (void)state;
    struct peer p;
    peer_start(&p, script_keeps_one_and_takes_another, NULL);
    for (int i = 0; i < 2; i++) {
        struct http_call call = {.method = HTTP_DELETE,
                                 .url = url_of(&p, "/x"),
                                 .once = i == 1,
                                 .total_timeout_ms = 60000};
        struct outcome o;
        call_whole(&call, &o);
        assert_ended(&o, 0, NULL);
        outcome_free(&o);
    }
    peer_join(&p);
    assert_int_equal(p.accepted, 2);
}

static void answer_one(struct peer_conn *c)
{
    peer_read_request(c);
    peer_print(c, "HTTP/1.1 204 No Content\r\n\r\n");
}

/* The second request may have been carried out; its repetition finds nothing left to do.  Whether
 * curl would keep the connection of a repetition depends on its release: it is told not to. */
static void script_dies_after_a_request(struct peer *p)
{
    struct peer_conn *kept = peer_accept(p);
    answer_one(kept);
    peer_read_request(kept);
    bool leaves = p->ctx != NULL;
    if (leaves)
        peer_stop(p);
    peer_close(kept);
    if (leaves)
        return;
    struct peer_conn *other = peer_accept(p);
    peer_read_request(other);
    peer_print(other, "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    peer_close(other);
    struct peer_conn *third = peer_accept(p);
    answer_one(third);
    peer_close(third);
}

static void post_to(struct peer *p, struct outcome *o)
{
    const struct http_call call = {
        .method = HTTP_POST, .url = url_of(p, "/x"), .total_timeout_ms = 60000};
    call_whole(&call, o);
}

static void test_a_repeated_call_says_so(void **state)
{
    (void)state;
    static const struct {
        int status;
        bool repeated;
    } expected[] = {{204, false}, {404, true}, {204, false}};
    struct peer p;
    peer_start(&p, script_dies_after_a_request, NULL);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct outcome o;
        post_to(&p, &o);
        assert_int_equal(o.status, expected[i].status);
        assert_int_equal(o.repeated, expected[i].repeated);
        outcome_free(&o);
    }
    peer_join(&p);
}

static void test_what_was_sent_once_is_not_unsent(void **state)
{
    (void)state;
    struct peer p;
    struct outcome o;
    peer_start(&p, script_dies_after_a_request, &p);
    post_to(&p, &o);
    assert_ended(&o, 0, NULL);
    outcome_free(&o);
    post_to(&p, &o);
    assert_ended(&o, E_NET, NULL);
    assert_false(o.not_sent);
    outcome_free(&o);
    peer_join(&p);
    post_to(&p, &o);
    assert_ended(&o, E_NET, NULL);
    assert_true(o.not_sent);
    outcome_free(&o);
}

/* The kept connection dies while the writer of the body has nothing yet. */
static void script_dies_while_the_upload_waits(struct peer *p)
{
    struct peer_conn *kept = peer_accept(p);
    answer_one(kept);
    peer_read_head(kept);
    peer_close(kept);
    struct peer_conn *other = peer_accept(p);
    bpipe_write(p->ctx, "x", 1, NULL);
    bpipe_finish(p->ctx, NULL);
    answer_one(other);
    peer_close(other);
}

static void test_an_upload_that_waits_goes_to_another(void **state)
{
    (void)state;
    struct peer p;
    struct outcome o;
    struct bpipe *pipe = bpipe_new(4096);
    peer_start(&p, script_dies_while_the_upload_waits, pipe);
    post_to(&p, &o);
    assert_ended(&o, 0, NULL);
    outcome_free(&o);
    const struct http_call call = {.method = HTTP_PUT,
                                   .url = url_of(&p, "/x"),
                                   .upload = pipe,
                                   .upload_length = 1,
                                   .total_timeout_ms = 60000};
    call_whole(&call, &o);
    assert_ended(&o, 0, NULL);
    assert_true(o.repeated);
    outcome_free(&o);
    bpipe_unref(pipe);
    http_client_free(steal(fx.client)); /* it may still hear of the pipe */
    peer_join(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        client_test(test_once),
        client_test(test_a_repeated_call_says_so),
        client_test(test_what_was_sent_once_is_not_unsent),
        client_test(test_an_upload_that_waits_goes_to_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
