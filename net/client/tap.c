/* References: the reader's, and one of each message to the loop.  `poll` and `timer` are the loop's
 * alone.  What a reader is told goes through `lock`, so that after tap_free() no fn() runs. */
#include "net/client/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "common/mem.h"
#include "io/loop.h"

enum {
    PIPE_BYTES = 1 << 20,   /* the kernel's default is 64 KiB, which stays where this is refused */
    WAIT_BYTES = 256 << 10, /* the reader is woken for so many, not for each packet */
};

struct tap {
    atomic_uint refs;
    struct loop *loop;
    int fd; /* the server's */
    int pipe[2];
    size_t piped;  /* bytes in the pipe */
    uint64_t left; /* bytes that are not out, those in the pipe included */
    uint64_t stall_ms;
    uv_poll_t *poll;
    struct loop_timer *timer;
    pthread_mutex_t lock; /* of what follows */
    void (*fn)(void *arg);
    void *arg;
    bool stalled;
};

/* By a reset: a port would else be taken for a minute, and each large reply takes one. */
static void reset(int fd)
{
    const struct linger at_once = {.l_onoff = 1};
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once); /* it is slower then */
    close(fd);
}

static void tap_unref(struct tap *t)
{
    if (atomic_fetch_sub(&t->refs, 1) != 1)
        return;
    reset(t->fd);
    close(t->pipe[0]);
    close(t->pipe[1]);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static void post(struct tap *t, void (*fn)(void *arg))
{
    atomic_fetch_add(&t->refs, 1);
    loop_post(t->loop, fn, t);
}

/* --- the loop's side -------------------------------------------------------------------------- */

static void wake(struct tap *t, bool stalled)
{
    uv_poll_stop(t->poll);
    loop_timer_stop(t->timer);
    pthread_mutex_lock(&t->lock);
    t->stalled = t->stalled || stalled;
    if (t->fn != NULL)
        t->fn(t->arg);
    pthread_mutex_unlock(&t->lock);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events; /* the next read tells */
    wake(poll->data, false);
}

static void on_stall(void *arg)
{
    wake(arg, true);
}

static void watch(void *arg)
{
    struct tap *t = arg;
    if (uv_poll_start(t->poll, UV_READABLE, on_poll) == 0)
        loop_timer_start(t->timer, t->stall_ms, 0);
    else
        wake(t, true);
    tap_unref(t);
}

static void poll_closed(uv_handle_t *h)
{
    struct tap *t = h->data;
    free(h);
    tap_unref(t);
}

/* The socket is closed when the loop has left it. */
static void unwatch(void *arg)
{
    struct tap *t = arg;
    loop_timer_free(t->timer);
    uv_close((uv_handle_t *)t->poll, poll_closed);
}

struct tap *tap_new(struct loop *loop, int fd, uint64_t length, uint64_t stall_ms)
{
    struct tap *t = xcalloc(1, sizeof *t);
    *t = (struct tap){.loop = loop, .fd = fd, .left = length, .stall_ms = stall_ms};
    t->poll = xcalloc(1, sizeof *t->poll);
    bool piped = pipe2(t->pipe, O_CLOEXEC | O_NONBLOCK) == 0;
    if (!piped || uv_poll_init(loop_uv(loop), t->poll, fd) != 0) {
        if (piped)
            close(t->pipe[0]), close(t->pipe[1]);
        close(fd);
        free(t->poll);
        free(t);
        return NULL;
    }
    (void)fcntl(t->pipe[1], F_SETPIPE_SZ, PIPE_BYTES);
    t->poll->data = t;
    t->timer = loop_timer_new(loop, on_stall, t);
    atomic_init(&t->refs, 1);
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

/* --- the reader's side ------------------------------------------------------------------------ */

void tap_free(struct tap *t)
{
    if (t == NULL)
        return;
    tap_on_data(t, NULL, NULL);
    loop_post(t->loop, unwatch, t); /* with the reader's reference */
}

void tap_on_data(struct tap *t, void (*fn)(void *arg), void *arg)
{
    pthread_mutex_lock(&t->lock);
    t->fn = fn;
    t->arg = arg;
    pthread_mutex_unlock(&t->lock);
}

uint64_t tap_left(const struct tap *t)
{
    return t->left;
}

/* The loop is asked again for each wait. */
static ssize_t wait_for_data(struct tap *t)
{
    uint64_t wanted = t->left - t->piped;
    int lowat = wanted < WAIT_BYTES ? (int)wanted : WAIT_BYTES;
    (void)setsockopt(t->fd, SOL_SOCKET, SO_RCVLOWAT, &lowat, sizeof lowat); /* woken too often */
    pthread_mutex_lock(&t->lock);
    bool stalled = t->stalled;
    pthread_mutex_unlock(&t->lock);
    if (stalled)
        return TAP_CUT;
    post(t, watch);
    return TAP_EMPTY;
}

static ssize_t failure(ssize_t n)
{
    return n < 0 && (errno == EAGAIN || errno == EINTR) ? TAP_EMPTY : TAP_CUT;
}

/* From the server's socket until the pipe is full: whether there is something in it. */
static ssize_t fill(struct tap *t)
{
    uint64_t wanted = t->left - t->piped;
    if (wanted == 0)
        return 1;
    size_t most = wanted < PIPE_BYTES ? (size_t)wanted : PIPE_BYTES;
    ssize_t n = splice(t->fd, NULL, t->pipe[1], NULL, most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n > 0)
        t->piped += (size_t)n;
    if (t->piped > 0)
        return 1;
    return failure(n) == TAP_EMPTY ? wait_for_data(t) : TAP_CUT;
}

static ssize_t taken(struct tap *t, ssize_t n)
{
    t->piped -= (size_t)n;
    t->left -= (size_t)n;
    return n;
}

ssize_t tap_splice(struct tap *t, int to, size_t max)
{
    ssize_t filled = fill(t);
    if (filled <= 0)
        return filled;
    size_t len = t->piped < max ? t->piped : max;
    unsigned more = t->left > len ? SPLICE_F_MORE : 0;
    ssize_t n = splice(t->pipe[0], NULL, to, NULL, len, SPLICE_F_MOVE | SPLICE_F_NONBLOCK | more);
    if (n > 0)
        return taken(t, n);
    return failure(n) == TAP_EMPTY ? TAP_FULL : TAP_CUT;
}

ssize_t tap_read(struct tap *t, char *out, size_t max)
{
    ssize_t filled = fill(t);
    if (filled <= 0)
        return filled;
    ssize_t n = read(t->pipe[0], out, t->piped < max ? t->piped : max);
    return n > 0 ? taken(t, n) : TAP_CUT;
}
