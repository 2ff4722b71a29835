/* Random conversations: requests of every kind, one behind the other on one connection, sent in
 * pieces that end anywhere; and some that stop anywhere.  Every reply must be the right one, and
 * nothing may be left over.  A failure prints the seed; SEED=n in the environment repeats it. */
#include "net/http/server.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/rng.h"
#include "io/pool.h"
#include "net/http/pipe.h"
#include "net/testing/server_fixture.h"

static atomic_int open_requests;

static void on_end(void *arg)
{
    (void)arg;
    open_requests--;
}

static void count(struct http_request *req)
{
    open_requests++;
    http_on_end(req, on_end, NULL);
}

static uint64_t number(const struct http_request *req)
{
    return strtoull(http_query(req, "n"), NULL, 10);
}

/* --- handlers: each replies with n letters ---------------------------------------------------- */

static char letter(uint64_t n, uint64_t at)
{
    return (char)('a' + (n + at * 7) % 26);
}

static void fill(char *out, uint64_t n, uint64_t from, size_t len)
{
    for (size_t i = 0; i < len; i++)
        out[i] = letter(n, from + i);
}

static void reply_letters(void *arg)
{
    struct http_request *req = arg;
    uint64_t n = number(req);
    char *data = xmalloc(n + 1);
    fill(data, n, 0, n);
    http_reply_data(req, 200, "text/plain", data, n);
    free(data);
}

static void get_now(struct http_request *req)
{
    count(req);
    reply_letters(req);
}

static void get_later(struct http_request *req)
{
    count(req);
    assert_int_equal(pool_submit(fx.pool, reply_letters, req, NULL), 0);
}

struct source {
    uint64_t n;
    uint64_t at;
};

static ssize_t source_read(void *ctx, char *out, size_t max)
{
    struct source *s = ctx;
    if (s->at == s->n)
        return HTTP_STREAM_END;
    size_t len = s->n - s->at < max ? (size_t)(s->n - s->at) : max;
    len = len < 777 ? len : 777;
    fill(out, s->n, s->at, len);
    s->at += len;
    return (ssize_t)len;
}

static void get_stream(struct http_request *req)
{
    static const struct http_stream_ops ops = {.read = source_read};
    count(req);
    struct source *s = arena_alloc(http_arena(req), sizeof *s);
    s->n = number(req);
    http_reply_stream(req, 200, s->n % 2 == 0 ? (int64_t)s->n : -1, &ops, s);
}

static void collected(struct http_request *req, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        assert_int_equal(data[i], letter(len, i));
    http_reply_data(req, 200, "text/plain", data, len);
}

static void put_collect(struct http_request *req)
{
    count(req);
    http_collect_body(req, 1 << 20, collected);
}

struct echo {
    struct bpipe *in;
    struct bpipe *out;
};

static void echo_work(void *arg)
{
    struct echo *e = arg;
    char piece[3000];
    ssize_t n;
    while ((n = bpipe_read(e->in, piece, sizeof piece, NULL)) > 0) {
        if (bpipe_write(e->out, piece, (size_t)n, NULL) != 0)
            break;
    }
    bpipe_finish(e->out, NULL);
    bpipe_unref(e->out);
    bpipe_unref(e->in);
    free(e);
}

static void echo_ended(struct http_request *req, void *ctx)
{
    http_reply_pipe(req, 200, -1, ctx);
}

static void echo_unref(void *arg)
{
    bpipe_unref(arg);
}

static void put_echo(struct http_request *req)
{
    count(req);
    struct echo *e = xcalloc(1, sizeof *e);
    e->in = bpipe_new(5000);
    e->out = bpipe_new(1 << 20);
    struct bpipe *in = bpipe_ref(e->in);
    struct bpipe *out = bpipe_ref(e->out);
    http_on_end(req, echo_unref, out);
    assert_int_equal(pool_submit(fx.pool, echo_work, e, NULL), 0);
    http_body_to_pipe(req, in, echo_ended, out);
    bpipe_unref(in);
}

static void put_refuse(struct http_request *req)
{
    count(req);
    reply_letters(req);
}

#define ROUTE(m, p, fn)                                                                            \
    {                                                                                              \
        .name = #fn, .method = m, .pattern = p, .nets = NET_ALL, .right = RIGHT_NONE, .begin = fn, \
        .query = HTTP_PARAMETERS({"n", "letters"})                                                 \
    }
static const struct http_route routes[] = {
    ROUTE(HTTP_GET, "/now", get_now),
    ROUTE(HTTP_HEAD, "/now", get_now),
    ROUTE(HTTP_GET, "/later", get_later),
    ROUTE(HTTP_GET, "/stream", get_stream),
    ROUTE(HTTP_HEAD, "/stream", get_stream),
    ROUTE(HTTP_PUT, "/collect", put_collect),
    ROUTE(HTTP_PUT, "/echo", put_echo),
    ROUTE(HTTP_PUT, "/refuse", put_refuse),
    ROUTE(HTTP_PUT, "/refuse_later", get_later),
    {.name = NULL},
};

/* --- conversations ---------------------------------------------------------------------------- */

struct talk {
    struct buf text;
    size_t count;
    struct {
        bool head;
        int status;
        uint64_t n; /* length of the reply's body */
    } replies[8];
};

static void put_chunked(struct rng *rng, struct buf *out, const char *body, size_t len)
{
    for (size_t at = 0; at < len;) {
        size_t n = 1 + rng_below(rng, len - at < 5000 ? len - at : 5000);
        buf_printf(out, "%zx%s\r\n", n, rng_below(rng, 4) == 0 ? ";x=y" : "");
        buf_append(out, body + at, n);
        buf_puts(out, "\r\n");
        at += n;
    }
    buf_puts(out, rng_below(rng, 4) == 0 ? "0\r\nTrailer: x\r\n\r\n" : "0\r\n\r\n");
}

static void talk_add(struct talk *t, struct rng *rng)
{
    static const struct {
        const char *method, *path;
        uint64_t max;
        bool body, unwanted;
    } kinds[] = {
        {"GET", "/now", 300000, false, false},       {"HEAD", "/now", 1000, false, false},
        {"GET", "/later", 300000, false, false},     {"GET", "/stream", 100000, false, false},
        {"HEAD", "/stream", 1000, false, false},     {"PUT", "/collect", 300000, true, false},
        {"PUT", "/echo", 100000, true, false},       {"PUT", "/refuse", 60000, true, true},
        {"PUT", "/refuse_later", 60000, true, true}, {"GET", "/nowhere", 10, false, false},
    };
    size_t k = rng_below(rng, sizeof kinds / sizeof kinds[0]);
    uint64_t n = rng_below(rng, rng_below(rng, 3) == 0 ? kinds[k].max : 100);
    /* A chunked body that nobody wants would end the connection. */
    bool chunked = kinds[k].body && !kinds[k].unwanted && rng_below(rng, 2) == 0;
    buf_printf(&t->text, "%s %s?n=%llu HTTP/1.1\r\nHost: x\r\n", kinds[k].method, kinds[k].path,
               (unsigned long long)n);
    if (kinds[k].body && !chunked)
        buf_printf(&t->text, "Content-Length: %llu\r\n", (unsigned long long)n);
    buf_puts(&t->text, chunked ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n");
    _cleanup_free_ char *body = xmalloc(n + 1);
    fill(body, n, 0, n);
    if (chunked)
        put_chunked(rng, &t->text, body, n);
    else if (kinds[k].body)
        buf_append(&t->text, body, n);
    bool found = strcmp(kinds[k].path, "/nowhere") != 0;
    t->replies[t->count].head = strcmp(kinds[k].method, "HEAD") == 0;
    t->replies[t->count].status = found ? 200 : 404;
    t->replies[t->count].n = n;
    t->count++;
}

struct sender {
    struct wire *wire;
    const struct buf *text;
    size_t len; /* of the text: where it stops */
    struct rng rng;
};

static void *send_pieces(void *arg)
{
    struct sender *s = arg;
    for (size_t at = 0; at < s->len;) {
        static const size_t sizes[] = {1, 10, 100, 5000, 100000};
        size_t max = sizes[rng_below(&s->rng, 5)];
        size_t n = 1 + rng_below(&s->rng, max);
        n = n < s->len - at ? n : s->len - at;
        if (!wire_try_send(s->wire, s->text->data + at, n))
            break;
        at += n;
        if (rng_below(&s->rng, 8) == 0)
            sched_yield();
    }
    return NULL;
}

static void check_reply(const struct talk *t, size_t i, struct wire *w, uint64_t seed)
{
    struct wire_reply r;
    wire_read(w, t->replies[i].head, &r);
    bool right = r.status == t->replies[i].status && r.complete;
    if (right && !t->replies[i].head && r.status == 200) {
        right = r.body.len == t->replies[i].n;
        for (size_t at = 0; right && at < r.body.len; at++)
            right = r.body.data[at] == letter(t->replies[i].n, at);
    }
    if (!right)
        fail_msg("seed %llu: reply %zu is wrong: %s", (unsigned long long)seed, i,
                 buf_str(&r.head));
    wire_reply_done(&r);
}

static void converse(uint64_t seed)
{
    struct rng rng;
    rng_seed(&rng, seed);
    struct talk t = {.text = BUF_INIT};
    size_t requests = 1 + rng_below(&rng, 8);
    for (size_t i = 0; i < requests; i++)
        talk_add(&t, &rng);
    bool stops = rng_below(&rng, 4) == 0;
    struct wire w = wire_open(fx.port);
    wire_make_duplex(&w);
    struct sender s = {.wire = &w, .text = &t.text, .len = t.text.len};
    if (stops)
        s.len = rng_below(&rng, t.text.len);
    rng_seed(&s.rng, seed + 1);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, send_pieces, &s), 0);
    for (size_t i = 0; i < t.count && !stops; i++)
        check_reply(&t, i, &w, seed);
    pthread_join(thread, NULL);
    if (!stops && wire_peek(&w, 1) != -1)
        fail_msg("seed %llu: something is left over", (unsigned long long)seed);
    wire_close(&w);
    buf_done(&t.text);
}

static void test_conversations(void **state)
{
    (void)state;
    const char *only = getenv("SEED");
    uint64_t first = only != NULL ? strtoull(only, NULL, 10) : 1;
    for (uint64_t seed = first; seed < first + (only != NULL ? 1 : 400); seed++)
        converse(seed);
    for (uint64_t end = clock_ms() + 20000; open_requests != 0 && clock_ms() < end;)
        sched_yield();
    assert_int_equal(open_requests, 0);
}

static int setup(void **state)
{
    (void)state;
    open_requests = 0;
    fixture_start(fixture_config(NET_ALL), routes);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_conversations, setup, fixture_stop),
    };
    int failed = cmocka_run_group_tests_name("plain", tests, NULL, NULL);
    fixture_begin_tls();
    failed += cmocka_run_group_tests_name("tls", tests, NULL, NULL);
    fixture_end_tls();
    return failed;
}
