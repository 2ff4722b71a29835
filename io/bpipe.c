/* A ring of bytes under one lock.  Each side has a condition (for the blocking calls) and a wake-up
 * (for the try_ calls); a try_ call that returns BPIPE_AGAIN arms its side's wake-up, and whatever
 * makes another try worth while disarms and runs it: bytes or space, the writer's finish, the
 * reader's cancel.
 *
 * A wake-up runs without the lock, so that it may call anything.  `running` tells who runs it, and
 * taking the callback away waits for that, unless it is the same thread (both ends in one loop). */
#include "io/bpipe.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "common/mem.h"

struct bpipe_side {
    pthread_cond_t cond;
    void (*fn)(void *arg);
    void *arg;
    bool armed;
    unsigned running; /* calls under way: more than one only when they nest */
    pthread_t runner; /* valid while running */
};

struct bpipe {
    atomic_uint refs;
    pthread_mutex_t lock; /* guards everything below; a leaf: nothing else is locked under it */
    struct bpipe_side writer;
    struct bpipe_side reader;
    bool finished;        /* by the writer */
    bool cancelled;       /* by the reader */
    struct error failure; /* the writer's, for the reader; or the reader's, for the writer */
    size_t head;          /* where the next byte is read */
    size_t used;
    size_t capacity;
    char *ring;
};

static void bpipe_side_init(struct bpipe_side *s)
{
    pthread_cond_init(&s->cond, NULL);
}

struct bpipe *bpipe_new(size_t capacity_bytes)
{
    assert(capacity_bytes > 0);
    struct bpipe *p = xcalloc(1, sizeof *p);
    p->ring = xmalloc(capacity_bytes);
    p->capacity = capacity_bytes;
    atomic_init(&p->refs, 1);
    pthread_mutex_init(&p->lock, NULL);
    bpipe_side_init(&p->writer);
    bpipe_side_init(&p->reader);
    return p;
}

struct bpipe *bpipe_ref(struct bpipe *p)
{
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

void bpipe_unref(struct bpipe *p)
{
    if (p == NULL || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
        return;
    pthread_cond_destroy(&p->writer.cond);
    pthread_cond_destroy(&p->reader.cond);
    pthread_mutex_destroy(&p->lock);
    free(p->ring);
    free(p);
}

/* Unlocks, and runs the side's wake-up if it waits for one. */
static void bpipe_unlock_and_wake(struct bpipe *p, struct bpipe_side *s)
{
    pthread_cond_broadcast(&s->cond);
    bool run = s->armed && s->fn != NULL;
    if (!run) {
        pthread_mutex_unlock(&p->lock);
        return;
    }
    void (*fn)(void *arg) = s->fn;
    void *arg = s->arg;
    s->armed = false;
    s->running++;
    s->runner = pthread_self();
    pthread_mutex_unlock(&p->lock);
    fn(arg);
    pthread_mutex_lock(&p->lock);
    s->running--;
    pthread_cond_broadcast(&s->cond);
    pthread_mutex_unlock(&p->lock);
}

/* With the lock held: the side's callback is gone, and does not run, when this returns. */
static void bpipe_side_set(struct bpipe *p, struct bpipe_side *s, void (*fn)(void *arg), void *arg)
{
    s->fn = fn;
    s->arg = arg;
    s->armed = false;
    while (s->running > 0 && !pthread_equal(s->runner, pthread_self()))
        pthread_cond_wait(&s->cond, &p->lock);
}

void bpipe_on_space(struct bpipe *p, void (*fn)(void *arg), void *arg)
{
    pthread_mutex_lock(&p->lock);
    bpipe_side_set(p, &p->writer, fn, arg);
    pthread_mutex_unlock(&p->lock);
}

void bpipe_on_data(struct bpipe *p, void (*fn)(void *arg), void *arg)
{
    pthread_mutex_lock(&p->lock);
    bpipe_side_set(p, &p->reader, fn, arg);
    pthread_mutex_unlock(&p->lock);
}

static int bpipe_failure(const struct bpipe *p, struct error *err)
{
    if (err != NULL)
        *err = p->failure;
    return p->failure.code;
}

/* As much as fits, in at most two pieces. */
static size_t bpipe_put(struct bpipe *p, const char *data, size_t len)
{
    size_t room = p->capacity - p->used;
    size_t n = len < room ? len : room;
    size_t tail = (p->head + p->used) % p->capacity;
    size_t first = n < p->capacity - tail ? n : p->capacity - tail;
    memcpy(p->ring + tail, data, first);
    memcpy(p->ring, data + first, n - first);
    p->used += n;
    return n;
}

static size_t bpipe_take(struct bpipe *p, char *out, size_t len)
{
    size_t n = len < p->used ? len : p->used;
    size_t first = n < p->capacity - p->head ? n : p->capacity - p->head;
    memcpy(out, p->ring + p->head, first);
    memcpy(out + first, p->ring, n - first);
    p->used -= n;
    p->head = p->used > 0 ? (p->head + n) % p->capacity : 0;
    return n;
}

static ssize_t bpipe_write_some(struct bpipe *p, const void *data, size_t len, bool wait,
                                struct error *err)
{
    assert(len > 0);
    pthread_mutex_lock(&p->lock);
    assert(!p->finished);
    while (wait && !p->cancelled && p->used == p->capacity)
        pthread_cond_wait(&p->writer.cond, &p->lock);
    ssize_t result;
    if (p->cancelled) {
        result = bpipe_failure(p, err);
    } else if (p->used == p->capacity) {
        p->writer.armed = true;
        result = BPIPE_AGAIN;
    } else {
        result = (ssize_t)bpipe_put(p, data, len);
        p->writer.armed = !wait && (size_t)result < len;
        bpipe_unlock_and_wake(p, &p->reader);
        return result;
    }
    pthread_mutex_unlock(&p->lock);
    return result;
}

int bpipe_write(struct bpipe *p, const void *data, size_t len, struct error *err)
{
    const char *at = data;
    while (len > 0) {
        ssize_t n = bpipe_write_some(p, at, len, true, err);
        if (n < 0)
            return (int)n;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

ssize_t bpipe_try_write(struct bpipe *p, const void *data, size_t len, struct error *err)
{
    return bpipe_write_some(p, data, len, false, err);
}

void bpipe_finish(struct bpipe *p, const struct error *error_or_null)
{
    pthread_mutex_lock(&p->lock);
    bpipe_side_set(p, &p->writer, NULL, NULL);
    if (!p->finished && !p->cancelled && error_or_null != NULL)
        p->failure = *error_or_null;
    p->finished = true;
    bpipe_unlock_and_wake(p, &p->reader);
}

static ssize_t bpipe_read_some(struct bpipe *p, void *out, size_t len, bool wait, struct error *err)
{
    assert(len > 0);
    pthread_mutex_lock(&p->lock);
    assert(!p->cancelled);
    while (wait && p->used == 0 && !p->finished)
        pthread_cond_wait(&p->reader.cond, &p->lock);
    ssize_t result;
    if (p->used > 0) {
        result = (ssize_t)bpipe_take(p, out, len);
        /* A waiting writer is woken when there is room for a good piece, not for each byte.  It
         * will be: whoever reads on empties the ring. */
        if (p->used <= p->capacity / 2) {
            bpipe_unlock_and_wake(p, &p->writer);
            return result;
        }
    } else if (p->finished) {
        result = bpipe_failure(p, err);
    } else {
        p->reader.armed = true;
        result = BPIPE_AGAIN;
    }
    pthread_mutex_unlock(&p->lock);
    return result;
}

ssize_t bpipe_read(struct bpipe *p, void *out, size_t len, struct error *err)
{
    return bpipe_read_some(p, out, len, true, err);
}

ssize_t bpipe_try_read(struct bpipe *p, void *out, size_t len, struct error *err)
{
    return bpipe_read_some(p, out, len, false, err);
}

int bpipe_read_full(struct bpipe *p, void *out, size_t len, struct error *err)
{
    char *at = out;
    size_t missing = len;
    while (missing > 0) {
        ssize_t n = bpipe_read(p, at, missing, err);
        if (n == BPIPE_END)
            return error_set(err, E_LENGTH, "the stream ended %zu bytes before its time", missing);
        if (n < 0)
            return (int)n;
        at += n;
        missing -= (size_t)n;
    }
    return 0;
}

void bpipe_cancel(struct bpipe *p, const struct error *why)
{
    pthread_mutex_lock(&p->lock);
    bpipe_side_set(p, &p->reader, NULL, NULL);
    if (!p->cancelled) {
        if (why != NULL)
            p->failure = *why;
        if (p->failure.code == 0)
            error_set(&p->failure, E_CANCELLED, "the reader of a stream went away");
        p->cancelled = true;
        p->used = 0;
    }
    bpipe_unlock_and_wake(p, &p->writer);
}

int bpipe_check(struct bpipe *p, struct error *err)
{
    pthread_mutex_lock(&p->lock);
    int code = p->failure.code != 0 ? bpipe_failure(p, err) : 0;
    pthread_mutex_unlock(&p->lock);
    return code;
}
