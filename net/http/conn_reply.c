/* Writing a reply.
 *
 * The head goes out together with the body where that is in memory, and announces more where a file
 * follows (MSG_MORE), so that a reply is one packet when it can be.  Whatever the socket does not
 * take of the head or of a stream's piece stands in `out` until it does; data and files are sent
 * from where they are.  A body that ends before its announced length closes the connection: it must
 * not look complete. */
#include "net/http/conn.h"

#include <assert.h>
#include <errno.h>
#include <linux/tcp.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#include "net/http/reactor_lists.h"
#include "net/http/request.h"
#include "net/http/server_state.h"

enum {
    STREAM_PIECE_BYTES = 64 * 1024,
    STREAM_FRAME_BYTES = 16, /* before a piece: its size in hex and CRLF */
    FIRST_TURN_BYTES = STREAM_PIECE_BYTES,
    LARGE_BYTES = 512 * 1024, /* a turn more costs a tenth of a reply of 100 KiB */
    /* No parameters: the two say what fits a CPU's cache, whatever the cluster is for.  Who wants
     * another send buffer for all connections sets net.ipv4.tcp_wmem. */
    NEAR_RTT_US = 250,
    NEAR_SEND_BYTES = 256 * 1024, /* the kernel doubles it: 2 GB/s at NEAR_RTT_US */
};

/* What a call that writes to the socket came to: bytes, 0 when it takes none now, or -1. */
static ssize_t conn_wrote(struct conn *c, ssize_t n)
{
    if (n >= 0) {
        if (n > 0)
            reactor_touch(c->reactor, c);
        c->budget -= (size_t)n < c->budget ? (size_t)n : c->budget;
        return n;
    }
    if (errno == EINTR)
        return 0;
    if (errno != EAGAIN)
        return -1;
    c->writable = false;
    return 0;
}

static ssize_t conn_send(struct conn *c, const void *data, size_t len)
{
    return conn_wrote(c, send(c->fd, data, len, MSG_NOSIGNAL));
}

static bool reply_is_large(const struct reply *r)
{
    return r->length < 0 || r->length > LARGE_BYTES;
}

/* The kernel lets a send buffer grow to megabytes.  A distant client needs that; for a near one it
 * only spreads what is under way over more memory than the CPU caches hold.  32 clients on loopback
 * cost 0.74 (16 MiB) and 0.53 (1 MiB) of the CPU time with the small buffer. */
static void conn_fit_send_buffer(struct conn *c)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof info;
    if (c->send_buffer_fits || getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
        info.tcpi_min_rtt > NEAR_RTT_US)
        return;
    int bytes = NEAR_SEND_BYTES;
    c->send_buffer_fits = setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) == 0;
}

/* --- the head --------------------------------------------------------------------------------- */

static ssize_t conn_send_head(struct conn *c, const struct buf *head, bool with_data, bool more)
{
    const struct reply *r = &c->req->reply;
    struct iovec parts[2] = {
        {.iov_base = head->data, .iov_len = head->len},
        {.iov_base = r->data, .iov_len = with_data ? (size_t)r->length : 0},
    };
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = with_data ? 2 : 1};
    return conn_wrote(c, sendmsg(c->fd, &message, MSG_NOSIGNAL | (more ? MSG_MORE : 0)));
}

enum conn_verdict conn_reply_begin(struct conn *c)
{
    const struct reply *r = &c->req->reply;
    bool body = reply_has_body(c->req);
    bool unbounded = body && r->length < 0;
    c->reply_chunked = unbounded && !c->http_1_0;
    c->reply_ended = false;
    c->reply_at = 0;
    if (unbounded && c->http_1_0)
        c->keep_alive = false; /* the end of the connection is the end of the body */
    if (body && reply_is_large(r))
        conn_fit_send_buffer(c);
    struct buf *head = &c->reactor->text;
    buf_clear(head);
    reply_head(c->req, c->keep_alive, c->http_1_0, head);
    ssize_t n = conn_send_head(c, head, body && r->kind == REPLY_DATA,
                               body && r->kind == REPLY_FILE && r->length > 0);
    if (n < 0)
        return CONN_CLOSE;
    if ((size_t)n < head->len)
        buf_append(&c->out, head->data + n, head->len - (size_t)n);
    else
        c->reply_at = (uint64_t)n - head->len;
    return CONN_AGAIN;
}

/* --- the body --------------------------------------------------------------------------------- */

/* True: nothing is left in `out`. */
static enum conn_verdict conn_flush(struct conn *c)
{
    ssize_t n = conn_send(c, c->out.data + c->out_at, c->out.len - c->out_at);
    if (n < 0)
        return CONN_CLOSE;
    c->out_at += (size_t)n;
    if (c->out_at == c->out.len) {
        buf_clear(&c->out);
        c->out_at = 0;
    }
    return c->writable ? CONN_AGAIN : CONN_WAIT;
}

static enum conn_verdict conn_send_data(struct conn *c)
{
    const struct reply *r = &c->req->reply;
    ssize_t n = conn_send(c, r->data + c->reply_at, (size_t)r->length - (size_t)c->reply_at);
    if (n < 0)
        return CONN_CLOSE;
    c->reply_at += (uint64_t)n;
    return c->writable ? CONN_AGAIN : CONN_WAIT;
}

static enum conn_verdict conn_send_file(struct conn *c)
{
    const struct reply *r = &c->req->reply;
    off_t offset = (off_t)(r->offset + c->reply_at);
    ssize_t n = request_file_ready(c->req, c->reply_at);
    if (n <= 0)
        return n == 0 ? CONN_WAIT : CONN_CLOSE;
    n = sendfile(c->fd, r->fd, &offset, (size_t)n < c->budget ? (size_t)n : c->budget);
    if (n == 0)
        return CONN_CLOSE; /* the file is shorter than it was */
    n = conn_wrote(c, n);
    if (n < 0)
        return CONN_CLOSE;
    c->reply_at += (uint64_t)n;
    return c->writable ? CONN_AGAIN : CONN_WAIT;
}

/* One chunk: its size is written before the data, where room was left for it. */
static void conn_frame_piece(struct conn *c, size_t len)
{
    char size[STREAM_FRAME_BYTES + 1];
    int n = snprintf(size, sizeof size, "%zx\r\n", len);
    c->out_at = STREAM_FRAME_BYTES - (size_t)n;
    memcpy(c->out.data + c->out_at, size, (size_t)n);
    c->out.len = STREAM_FRAME_BYTES + len;
    buf_append(&c->out, "\r\n", 2);
}

static enum conn_verdict conn_end_stream(struct conn *c)
{
    if (!c->reply_chunked)
        return c->req->reply.length < 0 ? CONN_DONE : CONN_CLOSE;
    c->reply_ended = true;
    buf_puts(&c->out, "0\r\n\r\n");
    return CONN_AGAIN;
}

static enum conn_verdict conn_stream_piece(struct conn *c)
{
    const struct reply *r = &c->req->reply;
    uint64_t max = STREAM_PIECE_BYTES;
    if (r->length >= 0 && (uint64_t)r->length - c->reply_at < max)
        max = (uint64_t)r->length - c->reply_at;
    buf_reserve(&c->out, STREAM_FRAME_BYTES + STREAM_PIECE_BYTES + 2);
    ssize_t n = request_stream_read(c->req, c->out.data + STREAM_FRAME_BYTES, (size_t)max);
    if (n == 0)
        return CONN_WAIT;
    if (n < 0)
        return n == HTTP_STREAM_END ? conn_end_stream(c) : CONN_CLOSE;
    c->reply_at += (uint64_t)n;
    if (c->reply_chunked) {
        conn_frame_piece(c, (size_t)n);
    } else {
        c->out_at = STREAM_FRAME_BYTES;
        c->out.len = STREAM_FRAME_BYTES + (size_t)n;
    }
    return CONN_AGAIN;
}

static bool conn_body_is_out(const struct conn *c)
{
    const struct reply *r = &c->req->reply;
    if (r->kind == REPLY_EMPTY || !reply_has_body(c->req) || c->reply_ended)
        return true;
    return r->length >= 0 && c->reply_at == (uint64_t)r->length;
}

/* Many may wait for the first byte of something large: nobody gets more than a piece before all of
 * them have had one. */
static void conn_take_turns(struct conn *c)
{
    if (reply_is_large(&c->req->reply) && c->reply_at == 0 && c->budget > FIRST_TURN_BYTES)
        c->budget = FIRST_TURN_BYTES;
}

enum conn_verdict conn_reply_step(struct conn *c)
{
    if (!c->writable)
        return CONN_WAIT;
    conn_take_turns(c);
    if (c->out.len > 0)
        return conn_flush(c);
    if (c->req->reply.kind != REPLY_STREAM)
        c->req->sent_bytes = c->reply_at;
    if (conn_body_is_out(c))
        return CONN_DONE;
    switch (c->req->reply.kind) {
    case REPLY_DATA:
        return conn_send_data(c);
    case REPLY_FILE:
        return conn_send_file(c);
    default:
        return conn_stream_piece(c);
    }
}
