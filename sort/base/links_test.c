#include "sort/base/links.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/mem.h"
#include "io/thread.h"

#define STREAM_BYTES 1000000

static pthread_t start(void *(*fn)(void *), void *arg)
{
    pthread_t thread;
    assert_int_equal(thread_start("test", fn, arg, &thread, NULL), 0);
    return thread;
}

static void *write_stream(void *arg)
{
    struct link *k = arg;
    struct sink sink = sink_link(k);
    unsigned char piece[3000];
    for (size_t at = 0; at < STREAM_BYTES; at += sizeof piece) {
        size_t n = STREAM_BYTES - at < sizeof piece ? STREAM_BYTES - at : sizeof piece;
        for (size_t i = 0; i < n; i++)
            piece[i] = (unsigned char)((at + i) * 7);
        assert_int_equal(sink.write(sink.ctx, piece, n, NULL), 0);
    }
    link_finish(k, NULL);
    link_free(k);
    return NULL;
}

static void test_a_stream_through_two_links(void **state)
{
    (void)state;
    struct links *here = links_new(1);
    struct links *there = links_new(1);
    struct bpipe *pipe = bpipe_new(4096);
    assert_int_equal(links_offer(there, 0, pipe, NULL), 0);
    pthread_t writer = start(write_stream, link_writer(here, pipe));
    struct link *k = NULL;
    assert_int_equal(links_take(there, 0, &k, NULL), 0);
    struct source source = source_link(k);
    size_t at = 0;
    unsigned char piece[5000];
    ssize_t n;
    while ((n = source.read(source.ctx, piece, sizeof piece, NULL)) > 0) {
        for (ssize_t i = 0; i < n; i++)
            assert_int_equal(piece[i], (unsigned char)((at + (size_t)i) * 7));
        at += (size_t)n;
    }
    assert_int_equal(n, 0);
    assert_int_equal(at, STREAM_BYTES);
    link_free(k);
    pthread_join(writer, NULL);
    links_free(here);
    links_free(there);
}

struct waiter {
    struct links *links;
    struct bpipe *pipe;
    int rc;
    struct error err;
};

static void *wait_for_slot(void *arg)
{
    struct waiter *w = arg;
    struct link *k = NULL;
    w->rc = links_take(w->links, 0, &k, &w->err);
    return NULL;
}

static void *wait_for_data(void *arg)
{
    struct waiter *w = arg;
    struct link *k = link_reader(w->links, bpipe_ref(w->pipe));
    struct source source = source_link(k);
    char byte;
    w->rc = (int)source.read(source.ctx, &byte, 1, &w->err);
    link_free(k);
    return NULL;
}

static void *wait_for_space(void *arg)
{
    struct waiter *w = arg;
    struct link *k = link_writer(w->links, bpipe_ref(w->pipe));
    struct sink sink = sink_link(k);
    char bytes[100] = {0};
    w->rc = sink.write(sink.ctx, bytes, sizeof bytes, &w->err);
    link_free(k);
    return NULL;
}

/* Stopped before, while, or (seldom) after the thread begins to wait: it always ends. */
static void test_a_stop_ends_every_wait(void **state)
{
    (void)state;
    void *(*const waits[])(void *) = {wait_for_slot, wait_for_data, wait_for_space};
    struct error why = ERROR_INIT;
    error_set(&why, E_ABORTED, "enough");
    for (int round = 0; round < 300; round++) {
        struct waiter w = {.links = links_new(1), .pipe = bpipe_new(10)};
        pthread_t thread = start(waits[round % 3], &w);
        links_stop(w.links, &why);
        pthread_join(thread, NULL);
        assert_int_equal(w.rc, E_ABORTED);
        assert_string_equal(w.err.message, "enough");
        bpipe_unref(w.pipe);
        links_free(w.links);
    }
}

static void test_the_first_reason_counts(void **state)
{
    (void)state;
    struct links *l = links_new(0);
    struct error first = {.code = E_IO, .message = "first"};
    struct error second = {.code = E_ABORTED, .message = "second"};
    struct error err = ERROR_INIT;
    assert_int_equal(links_check(l, &err), 0);
    links_stop(l, &first);
    links_stop(l, &second);
    assert_int_equal(links_check(l, &err), E_IO);
    assert_string_equal(err.message, "first");
    links_free(l);
}

static void test_slots_take_one_stream(void **state)
{
    (void)state;
    struct links *l = links_new(2);
    struct bpipe *pipe = bpipe_new(10);
    assert_int_equal(links_offer(l, 1, pipe, NULL), 0);
    assert_int_equal(links_offer(l, 1, pipe, NULL), E_JOB_STATE);
    struct link *k = NULL;
    assert_int_equal(links_take(l, 1, &k, NULL), 0);
    assert_int_equal(links_offer(l, 1, pipe, NULL), E_JOB_STATE);
    link_free(k);
    bpipe_unref(pipe);
    links_free(l);
}

/* A stream that nobody takes does not leave its writer waiting. */
static void test_untaken_streams_are_cancelled(void **state)
{
    (void)state;
    struct error why = ERROR_INIT;
    error_set(&why, E_ABORTED, "enough");
    for (int stopped = 0; stopped < 2; stopped++) {
        struct links *l = links_new(1);
        struct bpipe *pipe = bpipe_new(1);
        assert_int_equal(links_offer(l, 0, pipe, NULL), 0);
        if (stopped)
            links_stop(l, &why);
        else
            links_free(steal(l));
        assert_int_equal(bpipe_write(pipe, "xyz", 3, NULL), E_ABORTED);
        bpipe_finish(pipe, NULL);
        if (stopped)
            assert_int_equal(links_offer(l, 0, pipe, NULL), E_ABORTED);
        bpipe_unref(pipe);
        links_free(l);
    }
}

static void test_leaving_tells_the_other_side(void **state)
{
    (void)state;
    struct links *l = links_new(0);
    struct bpipe *pipe = bpipe_new(10);
    link_free(link_reader(l, bpipe_ref(pipe)));
    assert_int_equal(bpipe_write(pipe, "x", 1, NULL), E_ABORTED);
    bpipe_finish(pipe, NULL);
    bpipe_unref(pipe);

    pipe = bpipe_new(10);
    link_free(link_writer(l, bpipe_ref(pipe)));
    char byte;
    assert_int_equal(bpipe_read(pipe, &byte, 1, NULL), E_ABORTED);
    bpipe_unref(pipe);
    links_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stream_through_two_links),
        cmocka_unit_test(test_a_stop_ends_every_wait),
        cmocka_unit_test(test_the_first_reason_counts),
        cmocka_unit_test(test_slots_take_one_stream),
        cmocka_unit_test(test_untaken_streams_are_cancelled),
        cmocka_unit_test(test_leaving_tells_the_other_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
