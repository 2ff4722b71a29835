/* The client's uploads against a bare server: through pipes that are smaller than anything, writers
 * that fail, and replies that do not wait for the end. */
#include "net/testing/stream_fixture.h"

#include <sys/socket.h>

static void assert_uploads(size_t capacity, bool chunked)
{
    struct peer p;
    struct outcome o;
    struct end w;
    bool was_chunked = !chunked;
    const size_t len = length_for(capacity);
    peer_start(&p, script_count, &was_chunked);
    end_start(&w, write_main, capacity, len);
    call_begin(&p,
               (struct http_call){.method = HTTP_PUT,
                                  .upload = w.pipe,
                                  .upload_length = chunked ? -1 : (int64_t)len},
               &o);
    outcome_wait(&o);
    end_join(&w);
    peer_join(&p);
    assert_ended(&o, 0, NULL);
    assert_int_equal(strtoul(buf_str(&o.body), NULL, 10), len);
    assert_int_equal(w.rc, 0);
    assert_int_equal(was_chunked, chunked);
    outcome_free(&o);
}

static void test_upload(void **state)
{
    (void)state;
    assert_uploads(PIPE, true);
    assert_uploads(PIPE, false);
    assert_uploads(STREAM_BYTES, true);
}

static void test_upload_through_a_tiny_pipe(void **state)
{
    (void)state;
    assert_uploads(TINY, true);
    assert_uploads(TINY, false);
}

static void test_upload_of_nothing(void **state)
{
    (void)state;
    for (int64_t length = -1; length <= 0; length++) {
        struct peer p;
        struct outcome o;
        struct end w;
        bool chunked;
        peer_start(&p, script_count, &chunked);
        end_start(&w, write_main, PIPE, 0);
        call_begin(
            &p, (struct http_call){.method = HTTP_POST, .upload = w.pipe, .upload_length = length},
            &o);
        outcome_wait(&o);
        end_join(&w);
        peer_join(&p);
        assert_ended(&o, 0, NULL);
        assert_string_equal(buf_str(&o.body), "0");
        outcome_free(&o);
    }
}

/* Less than was announced cannot be sent as if it were all; more is not sent. */
static void test_upload_of_another_length(void **state)
{
    (void)state;
    struct peer p;
    struct outcome o;
    struct end w;
    bool chunked;
    peer_start(&p, script_count, &chunked);
    end_start(&w, write_main, PIPE, 1000);
    call_begin(&p,
               (struct http_call){.method = HTTP_PUT,
                                  .upload = w.pipe,
                                  .upload_length = 1001,
                                  .stall_timeout_ms = HTTP_NO_STALL_TIMEOUT},
               &o);
    outcome_wait(&o);
    end_join(&w);
    peer_join(&p);
    assert_ended(&o, E_LENGTH, "/x");

    peer_start(&p, script_count, &chunked);
    end_start(&w, write_main, PIPE, STREAM_BYTES);
    call_begin(&p, (struct http_call){.method = HTTP_PUT, .upload = w.pipe, .upload_length = 999},
               &o);
    outcome_wait(&o);
    end_join(&w);
    peer_join(&p);
    assert_ended(&o, 0, NULL);
    assert_string_equal(buf_str(&o.body), "999");
    assert_int_equal(w.rc, E_CANCELLED);
    outcome_free(&o);
}

static void test_writer_fails(void **state)
{
    (void)state;
    struct peer p;
    struct outcome o;
    bool cut = false;
    peer_start(&p, script_expect_cut, &cut);
    struct end w = {.pipe = bpipe_new(PIPE), .len = 100};
    error_set(&w.last, E_SHARD_CORRUPT, "the disk ate it");
    call_begin(&p, (struct http_call){.method = HTTP_PUT, .upload = w.pipe, .upload_length = -1},
               &o);
    assert_int_equal(pthread_create(&w.thread, NULL, write_main, &w), 0);
    outcome_wait(&o);
    end_join(&w);
    peer_join(&p);
    assert_true(cut);
    assert_ended(&o, E_SHARD_CORRUPT, "the disk ate it");
}

/* The server has stopped reading, so that curl asks for no more bytes: the writer's failure must
 * still end the call. */
static void test_writer_fails_while_the_server_is_stuck(void **state)
{
    (void)state;
    struct peer p;
    struct outcome o;
    pthread_barrier_t release;
    pthread_barrier_init(&release, NULL, 2);
    peer_start(&p, script_read_nothing, &release);
    struct bpipe *pipe = bpipe_new(PIPE);
    call_begin(&p,
               (struct http_call){.method = HTTP_PUT,
                                  .upload = pipe,
                                  .upload_length = -1,
                                  .stall_timeout_ms = HTTP_NO_STALL_TIMEOUT},
               &o);
    /* Until nothing has gone on for a while: socket and buffers are full. */
    static const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    char piece[4096] = {0};
    for (int idle = 0; idle < 15;) {
        ssize_t n = bpipe_try_write(pipe, piece, sizeof piece, NULL);
        idle = n > 0 ? 0 : idle + 1;
        if (n == BPIPE_AGAIN)
            nanosleep(&pause, NULL);
    }
    struct error why;
    error_set(&why, E_ABORTED, "the job was stopped");
    bpipe_finish(pipe, &why);
    outcome_wait(&o);
    assert_ended(&o, E_ABORTED, "the job was stopped");
    bpipe_unref(pipe);
    pthread_barrier_wait(&release);
    peer_join(&p);
    pthread_barrier_destroy(&release);
}

/* --- replies that do not wait for the upload -------------------------------------------------- */

/* Answers as soon as the head is there, and looks at no byte of the body. */
static void script_refuse(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    peer_read_head(c);
    peer_print(c, "HTTP/1.1 409 Conflict\r\n%sContent-Length: %zu\r\n\r\n%s", (const char *)p->ctx,
               strlen(CONFLICT), CONFLICT);
    char piece[4096];
    while (peer_read_some(c, piece, sizeof piece) > 0)
        ;
    peer_close(c);
}

static void assert_refused(const char *header, int64_t length)
{
    struct peer p;
    struct outcome o;
    struct end w;
    peer_start(&p, script_refuse, (void *)header);
    end_start(&w, write_main, PIPE, SIZE_MAX);
    call_begin(
        &p, (struct http_call){.method = HTTP_POST, .upload = w.pipe, .upload_length = length}, &o);
    outcome_wait(&o);
    end_join(&w);
    assert_ended(&o, E_JOB_STATE, "t2: too late");
    assert_int_equal(o.status, 409);
    assert_int_equal(w.rc, E_JOB_STATE); /* the writer is told */
    http_client_free(steal(fx.client));
    peer_join(&p);
    outcome_free(&o);
}

static void test_refused_upload_1(void **state)
{
    (void)state;
    assert_refused("", -1);
}

static void test_refused_upload_2(void **state)
{
    (void)state;
    assert_refused("Connection: close\r\n", -1);
}

static void test_refused_upload_3(void **state)
{
    (void)state;
    assert_refused("", INT64_C(1) << 40);
}

/* The same, while the upload waits for a writer that has nothing yet. */
static void assert_refused_while_waiting(const char *reply, int code, const char *words)
{
    struct peer p;
    struct outcome o;
    struct bpipe *pipe = bpipe_new(PIPE);
    peer_start(&p, script_refuse, (void *)reply);
    call_begin(&p,
               (struct http_call){.method = HTTP_POST,
                                  .upload = pipe,
                                  .upload_length = -1,
                                  .stall_timeout_ms = HTTP_NO_STALL_TIMEOUT},
               &o);
    outcome_wait(&o);
    assert_ended(&o, code, words);
    assert_int_equal(bpipe_write(pipe, "x", 1, NULL), code);
    bpipe_finish(pipe, NULL);
    bpipe_unref(pipe);
    http_client_free(steal(fx.client));
    peer_join(&p);
    outcome_free(&o);
}

static void test_refused_while_the_upload_waits_1(void **state)
{
    (void)state;
    assert_refused_while_waiting("", E_JOB_STATE, "t2: too late");
}

static void test_refused_while_the_upload_waits_2(void **state)
{
    (void)state;
    assert_refused_while_waiting("Connection: close\r\n", E_JOB_STATE, "t2: too late");
}

/* The last word and the end of the connection come together, and the watch looks at the call before
 * curl hears that the rest of the body is not wanted. */
static pthread_barrier_t has_left;

static void nothing(void *arg)
{
    (void)arg;
}

static void script_refuse_and_leave(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    peer_read_head(c);
    for (unsigned i = 0; i < 3; i++) /* the loop has looked at the socket, and the upload waits */
        loop_call(fx.loop, nothing, NULL);
    peer_print(c, "HTTP/1.1 409 Conflict\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
               strlen(CONFLICT), CONFLICT);
    shutdown(c->fd, SHUT_WR);
    pthread_barrier_wait(&has_left);
    char piece[4096];
    while (peer_read_some(c, piece, sizeof piece) > 0)
        ;
    peer_close(c);
}

static void hold_until_the_watch_is_due(void *arg, const struct http_head *head)
{
    static const struct timespec a_watch_and_more = {.tv_nsec = 400 * 1000 * 1000};
    (void)arg;
    (void)head;
    pthread_barrier_wait(&has_left);
    nanosleep(&a_watch_and_more, NULL);
}

static void test_refused_and_left_while_the_upload_waits(void **state)
{
    (void)state;
    struct peer p;
    struct outcome o;
    struct bpipe *pipe = bpipe_new(PIPE);
    pthread_barrier_init(&has_left, NULL, 2);
    peer_start(&p, script_refuse_and_leave, NULL);
    call_begin(&p,
               (struct http_call){.method = HTTP_PUT,
                                  .upload = pipe,
                                  .upload_length = 1 << 20,
                                  .on_head = hold_until_the_watch_is_due,
                                  .stall_timeout_ms = HTTP_NO_STALL_TIMEOUT},
               &o);
    outcome_wait(&o);
    assert_ended(&o, E_JOB_STATE, "t2: too late");
    bpipe_finish(pipe, NULL);
    bpipe_unref(pipe);
    http_client_free(steal(fx.client));
    peer_join(&p);
    pthread_barrier_destroy(&has_left);
    outcome_free(&o);
}

static void script_close_on_head(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    peer_read_head(c);
    peer_close(c);
}

static void test_server_leaves_while_the_upload_waits(void **state)
{
    (void)state;
    struct peer p;
    struct outcome o;
    struct bpipe *pipe = bpipe_new(PIPE);
    peer_start(&p, script_close_on_head, NULL);
    call_begin(&p,
               (struct http_call){.method = HTTP_POST,
                                  .upload = pipe,
                                  .upload_length = -1,
                                  .stall_timeout_ms = HTTP_NO_STALL_TIMEOUT},
               &o);
    outcome_wait(&o);
    assert_ended(&o, E_NET, "/x");
    bpipe_finish(pipe, NULL);
    bpipe_unref(pipe);
    peer_join(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        client_test(test_upload),
        client_test(test_upload_through_a_tiny_pipe),
        client_test(test_upload_of_nothing),
        client_test(test_upload_of_another_length),
        client_test(test_writer_fails),
        client_test(test_writer_fails_while_the_server_is_stuck),
        client_test(test_refused_upload_1),
        client_test(test_refused_upload_2),
        client_test(test_refused_upload_3),
        client_test(test_refused_while_the_upload_waits_1),
        client_test(test_refused_while_the_upload_waits_2),
        client_test(test_refused_and_left_while_the_upload_waits),
        client_test(test_server_leaves_while_the_upload_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
