/* Large replies that leave curl: all their bytes, in order, and what cuts them. */
#include "net/client/tap.h"

#include <errno.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/testing/stream_fixture.h"

struct tapped {
    struct outcome outcome; /* first: what done() is given */
    struct tap *tap;
    sem_t data;
};

struct script {
    size_t len, missing;
    bool stays; /* silent, after that, until `over` */
    int end;    /* errno of the connection's end, if the server looks for it (-1) */
    sem_t over;
};

static void script_reply(struct peer *p)
{
    struct peer_conn *c = peer_accept(p);
    struct script *s = p->ctx;
    char piece[50000];
    peer_read_request(c);
    bool ok = peer_print(c, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", s->len);
    for (size_t at = 0, end = s->len - s->missing; ok && at < end;) {
        size_t n = end - at < sizeof piece ? end - at : sizeof piece;
        stream_fill(piece, at, n);
        ok = peer_send(c, piece, n);
        at += n;
    }
    if (s->stays)
        sem_wait(&s->over);
    if (s->end != 0)
        s->end = recv(c->fd, piece, 1, 0) < 0 ? errno : 0;
    peer_close(c);
}

static void take_tap(void *arg, struct tap *tap)
{
    struct tapped *t = arg;
    t->tap = tap;
}

static void has_data(void *arg)
{
    sem_post(arg);
}

/* → how many bytes came by the pipe; all of them are right. */
static size_t begin(struct peer *p, struct tapped *t, struct script *s)
{
    struct end r;
    t->tap = NULL;
    sem_init(&t->data, 0, 0);
    sem_init(&s->over, 0, 0);
    peer_start(p, script_reply, s);
    end_start(&r, read_main, 4 * PIPE, SIZE_MAX);
    call_begin(p, (struct http_call){.method = HTTP_GET, .download = r.pipe, .on_tap = take_tap},
               &t->outcome);
    outcome_wait(&t->outcome);
    end_join(&r);
    assert_ended(&t->outcome, 0, NULL);
    assert_int_equal(r.rc, 0);
    if (t->tap != NULL) {
        tap_on_data(t->tap, has_data, &t->data);
        assert_int_equal(r.good + tap_left(t->tap), s->len);
    }
    return r.good;
}

static void do_nothing(void *arg)
{
    (void)arg;
}

static void end(struct peer *p, struct tapped *t, struct script *s)
{
    tap_free(t->tap);
    sem_post(&s->over);
    peer_join(p);
    loop_call(fx.loop, do_nothing, NULL); /* the loop has left the tap */
    sem_destroy(&t->data);
    sem_destroy(&s->over);
}

/* Until there are no more; the value that ended it. */
static ssize_t read_rest(struct tapped *t, size_t at, size_t *good)
{
    char piece[30000];
    while (tap_left(t->tap) > 0) {
        ssize_t n = tap_read(t->tap, piece, sizeof piece);
        if (n == TAP_CUT)
            return n;
        if (n == TAP_EMPTY)
            sem_wait(&t->data);
        else
            *good += stream_check(piece, at + *good, (size_t)n);
    }
    return TAP_EMPTY;
}

static void test_the_rest_is_read(void **state)
{
    (void)state;
    struct peer p;
    struct tapped t;
    struct script s = {.len = STREAM_BYTES, .end = -1};
    size_t first = begin(&p, &t, &s), good = 0;
    assert_non_null(t.tap);
    assert_int_equal(read_rest(&t, first, &good), TAP_EMPTY);
    assert_int_equal(first + good, STREAM_BYTES);
    end(&p, &t, &s);
    assert_int_equal(s.end, ECONNRESET);
}

static void drain(int fd, size_t at, size_t *good)
{
    char piece[30000];
    for (ssize_t n; (n = recv(fd, piece, sizeof piece, MSG_DONTWAIT)) > 0;)
        *good += stream_check(piece, at + *good, (size_t)n);
}

static void test_the_rest_is_spliced(void **state)
{
    (void)state;
    struct peer p;
    struct tapped t;
    struct script s = {.len = STREAM_BYTES};
    size_t first = begin(&p, &t, &s), good = 0, full = 0;
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    while (tap_left(t.tap) > 0) {
        ssize_t n = tap_splice(t.tap, pair[0], 100000);
        assert_int_not_equal(n, TAP_CUT);
        assert_true(n <= 100000);
        if (n == TAP_EMPTY)
            sem_wait(&t.data);
        full += n == TAP_FULL;
        if (n == TAP_FULL)
            drain(pair[1], first, &good);
    }
    drain(pair[1], first, &good);
    assert_int_equal(first + good, STREAM_BYTES);
    assert_true(full > 0);
    close(pair[0]);
    close(pair[1]);
    end(&p, &t, &s);
}

static void test_fewer_bytes_are_a_cut(void **state)
{
    (void)state;
    static const size_t missing[] = {1, 1000000};
    for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++) {
        struct peer p;
        struct tapped t;
        struct script s = {.len = STREAM_BYTES, .missing = missing[i]};
        size_t first = begin(&p, &t, &s), good = 0;
        assert_int_equal(read_rest(&t, first, &good), TAP_CUT);
        assert_int_equal(first + good, STREAM_BYTES - missing[i]);
        end(&p, &t, &s);
    }
}

static void test_silence_is_a_cut(void **state)
{
    (void)state;
    struct peer p;
    struct tapped t;
    struct script s = {.len = STREAM_BYTES, .missing = 1000, .stays = true};
    size_t first = begin(&p, &t, &s), good = 0;
    assert_int_equal(read_rest(&t, first, &good), TAP_CUT);
    assert_int_equal(first + good, STREAM_BYTES - 1000);
    end(&p, &t, &s);
}

static void test_small_replies_stay(void **state)
{
    (void)state;
    struct peer p;
    struct tapped t;
    struct script s = {.len = 100000};
    assert_int_equal(begin(&p, &t, &s), 100000);
    assert_null(t.tap);
    end(&p, &t, &s);
}

static void test_a_reader_leaves(void **state)
{
    (void)state;
    struct peer p;
    struct tapped t;
    struct script s = {.len = STREAM_BYTES, .missing = 1000000, .stays = true};
    size_t first = begin(&p, &t, &s), good = 0;
    char piece[1000];
    while (tap_read(t.tap, piece, sizeof piece) != TAP_EMPTY)
        good++;
    assert_true(first + good > 0);
    end(&p, &t, &s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        client_test(test_the_rest_is_read),      client_test(test_the_rest_is_spliced),
        client_test(test_fewer_bytes_are_a_cut), client_test(test_silence_is_a_cut),
        client_test(test_small_replies_stay),    client_test(test_a_reader_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
