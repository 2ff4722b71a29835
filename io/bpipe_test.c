#include "io/bpipe.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <cmocka.h>

#include "common/rng.h"
#include "io/loop.h"
#include "io/thread.h"

enum { STREAM_BYTES = 3 * 1000 * 1000 };

static unsigned char stream_byte(size_t i)
{
    return (unsigned char)(i * 2654435761u >> 13);
}

static void fill(char *out, size_t at, size_t len)
{
    for (size_t i = 0; i < len; i++)
        out[i] = (char)stream_byte(at + i);
}

static void check(const char *data, size_t at, size_t len)
{
    for (size_t i = 0; i < len; i++)
        assert_int_equal((unsigned char)data[i], stream_byte(at + i));
}

/* --- both sides block ------------------------------------------------------------------------- */

static void *write_stream(void *arg)
{
    struct bpipe *p = arg;
    struct rng rng;
    rng_seed(&rng, 1);
    char piece[5000];
    for (size_t at = 0; at < STREAM_BYTES;) {
        size_t n = 1 + rng_below(&rng, sizeof piece);
        n = n < STREAM_BYTES - at ? n : STREAM_BYTES - at;
        fill(piece, at, n);
        assert_int_equal(bpipe_write(p, piece, n, NULL), 0);
        at += n;
    }
    bpipe_finish(p, NULL);
    bpipe_unref(p);
    return NULL;
}

static void test_blocking_sides(void **state)
{
    (void)state;
    struct bpipe *p = bpipe_new(4097);
    pthread_t writer;
    assert_int_equal(thread_start("writer", write_stream, bpipe_ref(p), &writer, NULL), 0);
    struct rng rng;
    rng_seed(&rng, 2);
    char piece[6000];
    size_t at = 0;
    for (ssize_t n; (n = bpipe_read(p, piece, 1 + rng_below(&rng, sizeof piece), NULL)) != 0;) {
        assert_true(n > 0);
        check(piece, at, (size_t)n);
        at += (size_t)n;
    }
    assert_int_equal(at, STREAM_BYTES);
    assert_int_equal(bpipe_read(p, piece, 1, NULL), BPIPE_END);
    pthread_join(writer, NULL);
    bpipe_unref(p);
}

/* --- both sides in loops ---------------------------------------------------------------------- */

struct side {
    struct loop *loop;
    struct bpipe *pipe;
    size_t moved;
    atomic_bool ended;
    unsigned waits;
};

static void writer_run(void *arg)
{
    struct side *w = arg;
    char piece[1500];
    while (w->moved < STREAM_BYTES) {
        size_t n = STREAM_BYTES - w->moved < sizeof piece ? STREAM_BYTES - w->moved : sizeof piece;
        fill(piece, w->moved, n);
        ssize_t put = bpipe_try_write(w->pipe, piece, n, NULL);
        assert_true(put > 0 || put == BPIPE_AGAIN);
        w->moved += put > 0 ? (size_t)put : 0;
        if (put < (ssize_t)n) { /* the wake-up comes: another try now might end before it runs */
            w->waits++;
            return;
        }
    }
    bpipe_finish(w->pipe, NULL);
    bpipe_unref(w->pipe);
    w->ended = true;
}

static void reader_run(void *arg)
{
    struct side *r = arg;
    char piece[2500];
    for (;;) {
        ssize_t got = bpipe_try_read(r->pipe, piece, sizeof piece, NULL);
        if (got == BPIPE_AGAIN) {
            r->waits++;
            return;
        }
        if (got == BPIPE_END)
            break;
        assert_true(got > 0);
        check(piece, r->moved, (size_t)got);
        r->moved += (size_t)got;
    }
    bpipe_cancel(r->pipe, NULL);
    bpipe_unref(r->pipe);
    r->ended = true;
}

static void post_writer(void *arg)
{
    loop_post(((struct side *)arg)->loop, writer_run, arg);
}

static void post_reader(void *arg)
{
    loop_post(((struct side *)arg)->loop, reader_run, arg);
}

static void run_in_loops(struct loop *a, struct loop *b)
{
    struct bpipe *p = bpipe_new(10000);
    struct side w = {.loop = a, .pipe = p};
    struct side r = {.loop = b, .pipe = bpipe_ref(p)};
    bpipe_on_space(p, post_writer, &w);
    bpipe_on_data(p, post_reader, &r);
    loop_post(b, reader_run, &r);
    loop_post(a, writer_run, &w);
    while (!w.ended || !r.ended)
        sched_yield();
    assert_int_equal(r.moved, STREAM_BYTES);
    assert_true(w.waits > 0 && w.waits < STREAM_BYTES / 1000);
}

static void test_loops(void **state)
{
    (void)state;
    struct loop *a;
    struct loop *b;
    assert_int_equal(loop_new("a", &a, NULL), 0);
    assert_int_equal(loop_new("b", &b, NULL), 0);
    run_in_loops(a, b);
    run_in_loops(a, a); /* both ends in one thread */
    loop_free(a);
    loop_free(b);
}

/* --- ends ------------------------------------------------------------------------------------- */

static void test_error_follows_the_bytes(void **state)
{
    (void)state;
    struct bpipe *p = bpipe_new(16);
    struct error cut = ERROR_INIT;
    error_set(&cut, E_NET, "cable pulled");
    assert_int_equal(bpipe_write(p, "abc", 3, NULL), 0);
    bpipe_finish(p, &cut);
    char out[8];
    struct error err = ERROR_INIT;
    assert_int_equal(bpipe_read(p, out, sizeof out, &err), 3);
    assert_memory_equal(out, "abc", 3);
    assert_int_equal(bpipe_read(p, out, sizeof out, &err), E_NET);
    assert_string_equal(err.message, "cable pulled");
    bpipe_unref(p);
}

static void test_short_stream(void **state)
{
    (void)state;
    struct bpipe *p = bpipe_new(16);
    assert_int_equal(bpipe_write(p, "abc", 3, NULL), 0);
    bpipe_finish(p, NULL);
    char out[8];
    struct error err = ERROR_INIT;
    assert_int_equal(bpipe_read_full(p, out, 4, &err), E_LENGTH);
    assert_string_equal(err.message, "the stream ended 1 bytes before its time");
    bpipe_unref(p);
}

static void test_cancel_reaches_the_writer(void **state)
{
    (void)state;
    struct bpipe *p = bpipe_new(4);
    struct error why = ERROR_INIT;
    error_set(&why, E_ABORTED, "enough");
    assert_int_equal(bpipe_write(p, "abcd", 4, NULL), 0);
    assert_int_equal(bpipe_try_write(p, "e", 1, NULL), BPIPE_AGAIN);
    bpipe_cancel(p, &why);
    struct error err = ERROR_INIT;
    assert_int_equal(bpipe_write(p, "e", 1, &err), E_ABORTED);
    assert_string_equal(err.message, "enough");
    bpipe_finish(p, NULL);
    bpipe_unref(p);
}

static void *cancel_later(void *arg)
{
    char out[3];
    assert_int_equal(bpipe_read_full(arg, out, 3, NULL), 0);
    bpipe_cancel(arg, NULL);
    bpipe_unref(arg);
    return NULL;
}

static void test_cancel_wakes_a_blocked_writer(void **state)
{
    (void)state;
    struct bpipe *p = bpipe_new(16);
    pthread_t reader;
    assert_int_equal(thread_start("reader", cancel_later, bpipe_ref(p), &reader, NULL), 0);
    char piece[64] = {0};
    assert_int_equal(bpipe_write(p, piece, sizeof piece, NULL), E_CANCELLED);
    pthread_join(reader, NULL);
    bpipe_finish(p, NULL);
    bpipe_unref(p);
}

static void count_call(void *arg)
{
    ++*(int *)arg;
}

static void test_wakes_once(void **state)
{
    (void)state;
    struct bpipe *p = bpipe_new(4);
    int data = 0;
    int space = 0;
    bpipe_on_data(p, count_call, &data);
    bpipe_on_space(p, count_call, &space);
    char out[4];
    assert_int_equal(bpipe_try_write(p, "ab", 2, NULL), 2);
    assert_int_equal(data, 0); /* nobody waited */
    assert_int_equal(bpipe_try_read(p, out, 4, NULL), 2);
    assert_int_equal(bpipe_try_read(p, out, 4, NULL), BPIPE_AGAIN);
    assert_int_equal(bpipe_try_write(p, "abcdef", 6, NULL), 4);
    assert_int_equal(data, 1);
    assert_int_equal(bpipe_try_write(p, "ef", 2, NULL), BPIPE_AGAIN);
    assert_int_equal(bpipe_try_read(p, out, 1, NULL), 1);
    assert_int_equal(space, 0); /* room for one byte is not worth a wake-up */
    assert_int_equal(bpipe_try_read(p, out, 1, NULL), 1);
    assert_int_equal(space, 1);
    assert_int_equal(bpipe_try_read(p, out, 4, NULL), 2);
    assert_int_equal(space, 1);
    assert_int_equal(bpipe_try_read(p, out, 4, NULL), BPIPE_AGAIN);
    bpipe_finish(p, NULL);
    assert_int_equal(data, 2);
    assert_int_equal(bpipe_try_read(p, out, 4, NULL), BPIPE_END);
    bpipe_unref(p);
}

/* After bpipe_on_data(p, NULL, NULL) the callback's argument may go, also while writes race. */
struct racer {
    struct bpipe *pipe;
    atomic_bool stop;
};

static void *write_on(void *arg)
{
    struct racer *r = arg;
    while (!r->stop)
        bpipe_try_write(r->pipe, "x", 1, NULL);
    return NULL;
}

static void test_detach_waits(void **state)
{
    (void)state;
    struct racer racer = {.pipe = bpipe_new(64)};
    pthread_t writer;
    assert_int_equal(thread_start("writer", write_on, &racer, &writer, NULL), 0);
    for (int i = 0; i < 2000; i++) {
        int *calls = calloc(1, sizeof *calls);
        bpipe_on_data(racer.pipe, count_call, calls);
        char out[64];
        while (bpipe_try_read(racer.pipe, out, sizeof out, NULL) != BPIPE_AGAIN)
            ;
        bpipe_on_data(racer.pipe, NULL, NULL);
        free(calls);
    }
    racer.stop = true;
    pthread_join(writer, NULL);
    bpipe_unref(racer.pipe);
}

/* A writer that could not put all of its bytes may go to sleep, too. */
static void test_short_write_wakes(void **state)
{
    (void)state;
    struct bpipe *p = bpipe_new(4);
    int space = 0;
    bpipe_on_space(p, count_call, &space);
    char out[4];
    assert_int_equal(bpipe_try_write(p, "abcdef", 6, NULL), 4);
    assert_int_equal(bpipe_try_read(p, out, 4, NULL), 4);
    assert_int_equal(space, 1);
    assert_int_equal(bpipe_try_write(p, "ef", 2, NULL), 2);
    assert_int_equal(bpipe_try_read(p, out, 4, NULL), 2);
    assert_int_equal(space, 1);
    bpipe_unref(p);
}

static void test_check(void **state)
{
    (void)state;
    struct error why, err = ERROR_INIT;
    error_set(&why, E_IO, "the disk ate it");
    struct bpipe *p = bpipe_new(4);
    assert_int_equal(bpipe_try_write(p, "ab", 2, NULL), 2);
    assert_int_equal(bpipe_check(p, &err), 0);
    bpipe_finish(p, &why);
    assert_int_equal(bpipe_check(p, &err), E_IO); /* before the bytes are read */
    assert_string_equal(err.message, "the disk ate it");
    bpipe_unref(p);
    p = bpipe_new(4);
    bpipe_finish(p, NULL);
    assert_int_equal(bpipe_check(p, &err), 0);
    bpipe_unref(p);
    p = bpipe_new(4);
    bpipe_cancel(p, NULL);
    assert_int_equal(bpipe_check(p, &err), E_CANCELLED);
    bpipe_unref(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocking_sides),
        cmocka_unit_test(test_loops),
        cmocka_unit_test(test_error_follows_the_bytes),
        cmocka_unit_test(test_short_stream),
        cmocka_unit_test(test_cancel_reaches_the_writer),
        cmocka_unit_test(test_cancel_wakes_a_blocked_writer),
        cmocka_unit_test(test_wakes_once),
        cmocka_unit_test(test_short_write_wakes),
        cmocka_unit_test(test_detach_waits),
        cmocka_unit_test(test_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
