#include "target/sort/records_reply.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "common/log.h"
#include "common/mem.h"
#include "io/pool.h"
#include "net/http/handler.h"
#include "sort/task/records.h"

enum { PIECE_BYTES = 256 << 10 };

struct piece {
    char *data;
    size_t len, taken;
};

/* The stream's, and while a thread reads that one's, too. */
struct records_reply {
    struct http_request *req;
    struct pool *readers;
    struct sort_records *records; /* whoever reads */
    void (*release)(void *held);
    void *held;
    struct piece now;     /* the stream's: what it sends */
    pthread_mutex_t lock; /* of what follows */
    unsigned refs;
    bool gone;         /* the stream has ended */
    bool reading;      /* `next` is the reading thread's */
    bool ended;        /* there are no bytes behind `next` */
    struct piece next; /* to be sent after `now` */
    struct error err;
};

static void unref(struct records_reply *r)
{
    pthread_mutex_lock(&r->lock);
    bool last = --r->refs == 0;
    pthread_mutex_unlock(&r->lock);
    if (!last)
        return;
    sort_records_free(r->records);
    r->release(r->held);
    pthread_mutex_destroy(&r->lock);
    free(r->now.data);
    free(r->next.data);
    free(r);
}

/* --- a thread that reads ---------------------------------------------------------------------- */

static void read_piece(void *arg)
{
    struct records_reply *r = arg;
    struct error err = ERROR_INIT;
    ssize_t got = sort_records_read(r->records, r->next.data, PIECE_BYTES, &err);
    pthread_mutex_lock(&r->lock);
    r->reading = false;
    r->ended = got <= 0;
    r->next.len = got > 0 ? (size_t)got : 0;
    r->err = err;
    if (!r->gone)
        http_wake(r->req);
    pthread_mutex_unlock(&r->lock);
    unref(r);
}

/* With the lock. */
static void read_ahead_locked(struct records_reply *r)
{
    if (r->reading || r->ended || r->next.len > 0)
        return;
    if (r->next.data == NULL)
        r->next.data = xmalloc(PIECE_BYTES);
    r->refs++;
    r->reading = true;
    if (pool_submit(r->readers, read_piece, r, &r->err) == 0)
        return;
    r->refs--; /* the stream has its own */
    r->reading = false;
    r->ended = true;
}

/* --- the stream, in an HTTP thread ------------------------------------------------------------ */

/* Bytes of `now`; 0: none yet, or no more (err, *ended). */
static size_t have_piece(struct records_reply *r, bool *ended, struct error *err)
{
    pthread_mutex_lock(&r->lock);
    if (r->now.taken == r->now.len && !r->reading && r->next.len > 0) {
        struct piece sent = r->now;
        r->now = r->next;
        r->next = (struct piece){.data = sent.data};
    }
    read_ahead_locked(r);
    *ended = r->ended;
    *err = r->err;
    pthread_mutex_unlock(&r->lock);
    return r->now.len - r->now.taken;
}

/* What the stream says where there are no bytes now. */
static ssize_t nothing_now(bool ended, const struct error *err)
{
    if (!ended)
        return 0;
    if (err->code == 0)
        return HTTP_STREAM_END;
    log_warn("records not sent", lerr(err));
    return HTTP_STREAM_CUT;
}

static ssize_t give(void *ctx, char *out, size_t max)
{
    struct records_reply *r = ctx;
    struct error err;
    bool ended = false;
    size_t left = have_piece(r, &ended, &err);
    size_t n = left < max ? left : max;
    if (n == 0)
        return nothing_now(ended, &err);
    memcpy(out, r->now.data + r->now.taken, n);
    r->now.taken += n;
    return (ssize_t)n;
}

/* Straight into the socket: no copy on the way. */
static ssize_t give_socket(void *ctx, int to, size_t max)
{
    struct records_reply *r = ctx;
    struct error err;
    bool ended = false;
    size_t left = have_piece(r, &ended, &err);
    if (left == 0)
        return nothing_now(ended, &err);
    ssize_t n =
        send(to, r->now.data + r->now.taken, left < max ? left : max, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0)
        return errno == EAGAIN ? HTTP_STREAM_FULL : HTTP_STREAM_CUT;
    r->now.taken += (size_t)n;
    return n;
}

static void stream_ended(void *ctx)
{
    struct records_reply *r = ctx;
    pthread_mutex_lock(&r->lock);
    r->gone = true;
    pthread_mutex_unlock(&r->lock);
    unref(r);
}

/* A builder reads this stream when it comes to our records, and may have gigabytes of others
 * before. */
static bool are_wanted(void *ctx)
{
    struct records_reply *r = ctx;
    return sort_records_wanted(r->records);
}

void records_reply(struct http_request *req, struct pool *readers, struct sort_records *records,
                   void (*release)(void *held), void *held)
{
    static const struct http_stream_ops ops = {
        .read = give, .splice = give_socket, .free = stream_ended};
    struct records_reply *r = xcalloc(1, sizeof *r);
    *r = (struct records_reply){.req = req,
                                .readers = readers,
                                .records = records,
                                .release = release,
                                .held = held,
                                .refs = 1};
    pthread_mutex_init(&r->lock, NULL);
    http_be_patient(req, are_wanted, r);
    http_reply_stream(req, 200, sort_records_length(records), &ops, r);
}
