/* The client's streams against a bare server: downloads, both directions at once, ends that come
 * early on every side, stalls and cancellation.  Uploads alone: http_client_upload_test.c */
#include "net/testing/stream_fixture.h"

/* --- downloads -------------------------------------------------------------------------------- */

struct stream {
    size_t len;
    size_t missing; /* it stops so many bytes before the end */
};

/* Sends the stream, in pieces of random size. */
static void script_stream(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    const struct stream *s = p->ctx;
    struct rng rng;
    rng_seed(&rng, 4);
    char piece[70000];
    peer_read_request(c);
    bool ok = peer_print(c, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", s->len);
    for (size_t at = 0, end = s->len - s->missing; ok && at < end;) {
        size_t n = 1 + rng_below(&rng, sizeof piece);
        n = n < end - at ? n : end - at;
        stream_fill(piece, at, n);
        ok = peer_send(c, piece, n);
        at += n;
    }
    peer_close(c);
}

static void download(struct peer *p, size_t capacity, size_t len, struct outcome *o, struct end *r)
{
    end_start(r, read_main, capacity, len);
    call_begin(p, (struct http_call){.method = HTTP_GET, .download = r->pipe}, o);
    outcome_wait(o);
    end_join(r);
    peer_join(p);
}

static void test_download(void **state)
{
    (void)state;
    static const size_t capacities[] = {TINY, 4096, PIPE, STREAM_BYTES};
    for (size_t i = 0; i < sizeof capacities / sizeof *capacities; i++) {
        struct peer p;
        struct outcome o;
        struct end r;
        struct stream s = {.len = length_for(capacities[i])};
        peer_start(&p, script_stream, &s);
        download(&p, capacities[i], SIZE_MAX, &o, &r);
        assert_ended(&o, 0, NULL);
        assert_int_equal(r.good, s.len);
        assert_int_equal(r.rc, 0);
    }
}

static void test_download_cut_short(void **state)
{
    (void)state;
    static const size_t missing[] = {1, 1000, STREAM_BYTES};
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        struct peer p;
        struct outcome o;
        struct end r;
        struct stream s = {.len = STREAM_BYTES, .missing = missing[i]};
        peer_start(&p, script_stream, &s);
        download(&p, PIPE, SIZE_MAX, &o, &r);
        assert_ended(&o, E_NET, "/x");
        assert_int_equal(r.good, STREAM_BYTES - missing[i]);
        assert_int_equal(r.rc, E_NET);
    }
}

static void script_refuse_download(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    peer_read_request(c);
    peer_print(c, "HTTP/1.1 409 Conflict\r\nContent-Length: %zu\r\n\r\n%s", strlen(CONFLICT),
               CONFLICT);
    peer_close(c);
}

/* The reader gets the error, not its text; a relay gets the text. */
static void test_download_refused(void **state)
{
    (void)state;
    struct peer p;
    struct outcome o;
    struct end r;
    peer_start(&p, script_refuse_download, NULL);
    download(&p, TINY, SIZE_MAX, &o, &r);
    assert_ended(&o, E_JOB_STATE, "t2: too late");
    assert_int_equal(r.good, 0);
    assert_int_equal(r.rc, E_JOB_STATE);
    outcome_free(&o);

    peer_start(&p, script_refuse_download, NULL);
    struct bpipe *pipe = bpipe_new(PIPE);
    call_begin(&p,
               (struct http_call){.method = HTTP_GET, .download = pipe, .any_status_streams = true},
               &o);
    outcome_wait(&o);
    peer_join(&p);
    assert_int_equal(o.status, 409);
    char text[sizeof CONFLICT] = "";
    assert_int_equal(bpipe_read(pipe, text, sizeof text, NULL), strlen(CONFLICT));
    assert_string_equal(text, CONFLICT);
    assert_int_equal(bpipe_read(pipe, text, 1, NULL), BPIPE_END);
    bpipe_unref(pipe);
    outcome_free(&o);
}

/* --- readers that leave ----------------------------------------------------------------------- */

static void script_endless(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    char piece[4096];
    peer_read_request(c);
    peer_print(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n");
    size_t at = 0;
    do {
        stream_fill(piece, at, sizeof piece);
        at += sizeof piece;
    } while (peer_send(c, piece, sizeof piece));
    peer_close(c);
}

static void test_reader_leaves(void **state)
{
    (void)state;
    static const size_t capacities[] = {TINY, PIPE};
    for (size_t i = 0; i < sizeof capacities / sizeof *capacities; i++) {
        struct peer p;
        struct outcome o;
        struct end r;
        peer_start(&p, script_endless, NULL);
        download(&p, capacities[i], 100000, &o, &r); /* joins the server: it has noticed */
        assert_ended(&o, E_ABORTED, "had enough");
    }
}

/* The reader leaves while the transfer waits for room, and the server will send no more. */
static void script_some_then_wait(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    char piece[1000];
    peer_read_request(c);
    stream_fill(piece, 0, sizeof piece);
    peer_print(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
    peer_send(c, piece, *(size_t *)p->ctx);
    peer_read_head(c); /* until the client closes */
    peer_close(c);
}

static void assert_leaving_ends(size_t sent, size_t capacity)
{
    struct peer p;
    struct outcome o;
    peer_start(&p, script_some_then_wait, &sent);
    struct bpipe *pipe = bpipe_new(capacity);
    call_begin(&p,
               (struct http_call){
                   .method = HTTP_GET, .download = pipe, .stall_timeout_ms = HTTP_NO_STALL_TIMEOUT},
               &o);
    char piece[10];
    size_t len = sent < capacity ? sent : capacity;
    assert_int_equal(bpipe_read_full(pipe, piece, len < sizeof piece ? len : sizeof piece, NULL),
                     0);
    struct error why;
    error_set(&why, E_ABORTED, "the job was stopped");
    bpipe_cancel(pipe, &why);
    bpipe_unref(pipe);
    outcome_wait(&o);
    assert_ended(&o, E_ABORTED, "the job was stopped");
    peer_join(&p);
}

static void test_reader_leaves_a_full_pipe(void **state)
{
    (void)state;
    assert_leaving_ends(1000, TINY);
    assert_leaving_ends(1000, 100);
}

static void test_reader_leaves_a_silent_server(void **state)
{
    (void)state;
    assert_leaving_ends(0, PIPE);
    assert_leaving_ends(1000, PIPE);
}

/* --- both ways at once ------------------------------------------------------------------------ */

/* Sends back what comes, as it comes. */
static void script_echo(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    char piece[1500];
    const size_t len = *(size_t *)p->ctx;
    size_t at = 0;
    peer_read_head(c);
    bool ok = peer_print(c, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", len);
    while (ok && at < len) {
        size_t n = peer_read_some(c, piece, sizeof piece);
        ok = n > 0 && peer_send(c, piece, n);
        at += n;
    }
    peer_close(c);
}

static void test_both_ways(void **state)
{
    (void)state;
    static const size_t capacities[] = {TINY, 4096, PIPE};
    for (size_t i = 0; i < sizeof capacities / sizeof *capacities; i++) {
        struct peer p;
        struct outcome o;
        struct end w, r;
        size_t len = length_for(capacities[i]);
        peer_start(&p, script_echo, &len);
        end_start(&w, write_main, capacities[i], len);
        end_start(&r, read_main, capacities[i], SIZE_MAX);
        call_begin(&p,
                   (struct http_call){.method = HTTP_POST,
                                      .upload = w.pipe,
                                      .upload_length = (int64_t)len,
                                      .download = r.pipe},
                   &o);
        outcome_wait(&o);
        end_join(&w);
        end_join(&r);
        peer_join(&p);
        assert_ended(&o, 0, NULL);
        assert_int_equal(r.good, len);
    }
}

/* --- stalls and cancellation ------------------------------------------------------------------ */

/* A transfer that waits for our own writer, or reader, does not stall. */
static void test_own_slowness_is_no_stall(void **state)
{
    (void)state;
    static const struct timespec pause = {.tv_sec = 2 * STALL_MS / 1000,
                                          .tv_nsec = 2 * STALL_MS % 1000 * 1000000L};
    struct peer p;
    struct outcome o;
    bool chunked;
    peer_start(&p, script_count, &chunked);
    struct bpipe *pipe = bpipe_new(PIPE);
    call_begin(&p, (struct http_call){.method = HTTP_PUT, .upload = pipe, .upload_length = -1}, &o);
    char byte = stream_byte(0);
    nanosleep(&pause, NULL);
    assert_int_equal(bpipe_write(pipe, &byte, 1, NULL), 0);
    nanosleep(&pause, NULL);
    bpipe_finish(pipe, NULL);
    outcome_wait(&o);
    assert_ended(&o, 0, NULL);
    assert_string_equal(buf_str(&o.body), "1");
    bpipe_unref(pipe);
    peer_join(&p);
    outcome_free(&o);

    struct stream s = {.len = STREAM_BYTES};
    peer_start(&p, script_stream, &s);
    struct end r = {.pipe = bpipe_new(PIPE), .len = SIZE_MAX};
    call_begin(&p, (struct http_call){.method = HTTP_GET, .download = r.pipe}, &o);
    nanosleep(&pause, NULL);
    read_main(&r);
    outcome_wait(&o);
    assert_ended(&o, 0, NULL);
    assert_int_equal(r.good, STREAM_BYTES);
    bpipe_unref(r.pipe);
    peer_join(&p);
}

static void test_server_that_does_not_read_stalls(void **state)
{
    (void)state;
    struct peer p;
    struct outcome o;
    struct end w;
    pthread_barrier_t release;
    pthread_barrier_init(&release, NULL, 2);
    peer_start(&p, script_read_nothing, &release);
    end_start(&w, write_main, PIPE, SIZE_MAX);
    call_begin(&p, (struct http_call){.method = HTTP_PUT, .upload = w.pipe, .upload_length = -1},
               &o);
    outcome_wait(&o);
    end_join(&w);
    assert_ended(&o, E_TIMEOUT, "stall");
    assert_int_equal(w.rc, E_TIMEOUT);
    pthread_barrier_wait(&release);
    peer_join(&p);
    pthread_barrier_destroy(&release);
}

static void script_wait(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    char piece[100];
    while (peer_read_some(c, piece, sizeof piece) > 0)
        ;
    peer_close(c);
}

/* A call by its number; another number, and one that is no more, are no harm. */
static void test_cancel(void **state)
{
    (void)state;
    struct peer p;
    struct outcome o;
    peer_start(&p, script_wait, NULL);
    struct bpipe *up = bpipe_new(PIPE), *down = bpipe_new(PIPE);
    const struct http_call call = {.method = HTTP_POST,
                                   .url = url_of(&p, "/x"),
                                   .upload = up,
                                   .upload_length = -1,
                                   .download = down,
                                   .stall_timeout_ms = HTTP_NO_STALL_TIMEOUT};
    outcome_init(&o);
    uint64_t id = http_call_start(fx.client, &call, outcome_done, &o);
    http_call_cancel(fx.client, id + 1);
    assert_false(outcome_wait_for(&o, 1));
    http_call_cancel(fx.client, id);
    http_call_cancel(fx.client, id);
    outcome_wait(&o);
    assert_ended(&o, E_CANCELLED, "/x");
    http_call_cancel(fx.client, id);
    assert_int_equal(bpipe_write(up, "x", 1, NULL), E_CANCELLED);
    char byte;
    assert_int_equal(bpipe_read(down, &byte, 1, NULL), E_CANCELLED);
    bpipe_finish(up, NULL);
    bpipe_unref(up);
    bpipe_unref(down);
    peer_join(&p);
}

static void script_wait_for_all(struct peer *p)
{
    for (struct peer_conn *c; (c = peer_accept(p)) != NULL; peer_close(c))
        peer_read_head(c);
}

/* Right after the start, too, when nothing of it has happened. */
static void test_cancel_at_once(void **state)
{
    (void)state;
    struct peer p;
    peer_start(&p, script_wait_for_all, NULL);
    for (int i = 0; i < 100; i++) {
        struct outcome o;
        outcome_init(&o);
        http_call_cancel(fx.client, http_call_start(fx.client,
                                                    &(struct http_call){.method = HTTP_GET,
                                                                        .url = url_of(&p, "/x"),
                                                                        .stall_timeout_ms =
                                                                            HTTP_NO_STALL_TIMEOUT},
                                                    outcome_done, &o));
        outcome_wait(&o);
        assert_ended(&o, E_CANCELLED, NULL);
    }
    peer_stop(&p);
    peer_join(&p);
}

static void test_free_ends_streams(void **state)
{
    (void)state;
    struct peer p[3];
    struct outcome o[3];
    struct end w, r;
    size_t some = 1000;
    peer_start(&p[0], script_wait, NULL); /* an upload that waits for bytes */
    struct bpipe *idle = bpipe_new(PIPE);
    call_begin(&p[0], (struct http_call){.method = HTTP_PUT, .upload = idle, .upload_length = -1},
               &o[0]);
    peer_start(&p[1], script_endless, NULL); /* a download that waits for room */
    struct bpipe *full = bpipe_new(TINY);
    call_begin(&p[1], (struct http_call){.method = HTTP_GET, .download = full}, &o[1]);
    peer_start(&p[2], script_some_then_wait, &some); /* both, with threads that wait */
    end_start(&w, write_main, TINY, SIZE_MAX);
    end_start(&r, read_main, PIPE, SIZE_MAX);
    call_begin(&p[2],
               (struct http_call){
                   .method = HTTP_POST, .upload = w.pipe, .upload_length = -1, .download = r.pipe},
               &o[2]);
    char byte;
    assert_int_equal(bpipe_read(full, &byte, 1, NULL), 1);
    while (p[0].accepted + p[2].accepted < 2)
        sched_yield();
    http_client_free(steal(fx.client));
    for (int i = 0; i < 3; i++)
        assert_ended(&o[i], E_CANCELLED, "stopping");
    end_join(&w);
    end_join(&r);
    assert_int_equal(w.rc, E_CANCELLED);
    assert_int_equal(r.rc, E_CANCELLED);
    bpipe_finish(idle, NULL);
    bpipe_unref(idle);
    bpipe_unref(full);
    for (int i = 0; i < 3; i++)
        peer_join(&p[i]);
}

/* A call's end that starts the next one: the last of them ends before http_client_free() returns.
 */
struct chain {
    struct outcome outcome;
    const char *url;
    int left;
};

static void chain_done(void *arg, struct http_result *r)
{
    struct chain *c = arg;
    if (c->left-- > 0)
        http_call_start(fx.client, &(struct http_call){.method = HTTP_GET, .url = c->url},
                        chain_done, c);
    else
        outcome_done(&c->outcome, r);
}

static void test_free_ends_calls_that_ends_start(void **state)
{
    (void)state;
    struct peer p;
    peer_start(&p, script_wait, NULL);
    struct chain c = {.url = url_of(&p, "/x"), .left = 3};
    outcome_init(&c.outcome);
    http_call_start(fx.client, &(struct http_call){.method = HTTP_GET, .url = c.url}, chain_done,
                    &c);
    while (p.accepted == 0)
        sched_yield();
    http_client_free(fx.client);
    fx.client = NULL;
    assert_true(c.outcome.done);
    assert_ended(&c.outcome, E_CANCELLED, NULL);
    peer_join(&p);
}

/* --- faults ----------------------------------------------------------------------------------- */

static void test_faults(void **state)
{
    (void)state;
    struct peer p;
    struct outcome o;
    struct end w, r;
    bool cut = false;
    assert_int_equal(fault_configure("net.connect=ECONNREFUSED@1,net.send=cut@100k", NULL), 0);
    end_start(&w, write_main, PIPE, STREAM_BYTES);
    peer_start(&p, script_expect_cut, &cut);
    call_begin(&p, (struct http_call){.method = HTTP_PUT, .upload = w.pipe, .upload_length = -1},
               &o);
    outcome_wait(&o);
    end_join(&w);
    assert_ended(&o, E_NET, "injected: no connection");
    assert_int_equal(w.rc, E_NET);
    end_start(&w, write_main, PIPE, STREAM_BYTES);
    call_begin(&p, (struct http_call){.method = HTTP_PUT, .upload = w.pipe, .upload_length = -1},
               &o);
    outcome_wait(&o);
    end_join(&w);
    peer_join(&p);
    assert_true(cut);
    assert_ended(&o, E_NET, "injected: the connection is cut");

    assert_int_equal(fault_configure("net.recv=cut@100k", NULL), 0);
    struct stream s = {.len = STREAM_BYTES};
    peer_start(&p, script_stream, &s);
    download(&p, PIPE, SIZE_MAX, &o, &r);
    assert_ended(&o, E_NET, "injected: the connection is cut");
    assert_int_equal(r.rc, E_NET);
    assert_true(r.good >= 100 * 1024 && r.good < STREAM_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        client_test(test_download),
        client_test(test_download_cut_short),
        client_test(test_download_refused),
        client_test(test_reader_leaves),
        client_test(test_reader_leaves_a_full_pipe),
        client_test(test_reader_leaves_a_silent_server),
        client_test(test_both_ways),
        client_test(test_own_slowness_is_no_stall),
        client_test(test_server_that_does_not_read_stalls),
        client_test(test_cancel),
        client_test(test_cancel_at_once),
        client_test(test_free_ends_streams),
        client_test(test_free_ends_calls_that_ends_start),
        client_test(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
