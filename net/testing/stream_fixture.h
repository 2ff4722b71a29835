/* Streams of a client under test: threads at the ends of its pipes, and what a bare server makes of
 * an upload. */
#pragma once

#include "common/clock.h"
#include "common/rng.h"
#include "net/testing/client_fixture.h"

enum {
    STREAM_BYTES = 2 * 1000 * 1000,
    TINY = 7, /* of a pipe: no piece of anything fits */
    PIPE = 64 * 1024,
};

#define CONFLICT "{\"code\": \"job_state\", \"message\": \"too late\", \"node\": \"t2\"}"

/* Every few bytes of a tiny pipe cost a turn of two threads. */
static inline size_t length_for(size_t capacity)
{
    return capacity >= 4096 ? STREAM_BYTES : capacity * 3000;
}

/* A thread that writes the stream, or reads and checks it. */
struct end {
    pthread_t thread;
    struct bpipe *pipe;
    size_t len;        /* how much to write; to read before it leaves */
    struct error last; /* what a writer finishes with */
    size_t good;       /* bytes that went through */
    ssize_t rc;        /* what ended it: 0 or a code */
    struct error err;
};

static inline void *write_main(void *arg)
{
    struct end *e = arg;
    char piece[3001];
    while (e->good < e->len && e->rc == 0) {
        size_t n = e->len - e->good < sizeof piece ? e->len - e->good : sizeof piece;
        stream_fill(piece, e->good, n);
        e->rc = bpipe_write(e->pipe, piece, n, &e->err);
        e->good += e->rc == 0 ? n : 0;
    }
    bpipe_finish(e->pipe, e->last.code != 0 ? &e->last : NULL);
    return NULL;
}

static inline void *read_main(void *arg)
{
    struct end *e = arg;
    struct rng rng;
    rng_seed(&rng, 3);
    char piece[5000];
    while (e->good < e->len) {
        e->rc = bpipe_read(e->pipe, piece, 1 + rng_below(&rng, sizeof piece), &e->err);
        if (e->rc <= 0)
            return NULL;
        size_t good = stream_check(piece, e->good, (size_t)e->rc);
        e->good += good;
        if (good != (size_t)e->rc) {
            error_set(&e->err, E_CORRUPT, "byte %zu is wrong", e->good);
            e->rc = E_CORRUPT;
            break;
        }
    }
    struct error why;
    error_set(&why, E_ABORTED, "the reader has had enough");
    bpipe_cancel(e->pipe, &why);
    return NULL;
}

static inline void end_start(struct end *e, void *(*main)(void *arg), size_t capacity, size_t len)
{
    *e = (struct end){.pipe = bpipe_new(capacity), .len = len};
    assert_int_equal(pthread_create(&e->thread, NULL, main, e), 0);
}

static inline void end_join(struct end *e)
{
    pthread_join(e->thread, NULL);
    bpipe_unref(e->pipe);
}

static inline void call_begin(struct peer *p, struct http_call call, struct outcome *o)
{
    outcome_init(o);
    call.url = url_of(p, "/x");
    http_call_start(fx.client, &call, outcome_done, o);
}

/* Reads the whole request and tells how many bytes of the stream were right. */
static inline void script_count(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    if (peer_read_request(c)) {
        char text[24];
        snprintf(text, sizeof text, "%zu", stream_check(c->body.data, 0, c->body.len));
        peer_print(c, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(text), text);
        *(bool *)p->ctx = peer_saw(c, "Transfer-Encoding: chunked");
    }
    peer_close(c);
}

/* The server must not take what came for the whole. */
static inline void script_expect_cut(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    *(bool *)p->ctx = !peer_read_request(c);
    peer_close(c);
}

static inline void script_read_nothing(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    peer_read_head(c);
    pthread_barrier_wait(p->ctx);
    peer_close(c);
}
