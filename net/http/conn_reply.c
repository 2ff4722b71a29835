/* Writing a reply.
 *
 * The head goes out together with the body where that is in memory, and announces more where a file
 * follows (MSG_MORE), so that a reply is one packet when it can be.  Whatever the socket does not
 * take of the head or of a stream's piece stands in `out` until it does; data and files are sent
 * from where they are.  Under TLS pieces of the body are sealed into `out`, the first one of data
 * together with the head.  A body that ends before its announced length closes the connection: it
 * must not look complete.  One without a length resets it where the client speaks HTTP/1.0. */
#include "net/http/conn.h"

#include <assert.h>
#include <errno.h>
#include <linux/tcp.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include "net/http/conn_wire.h"
#include "net/http/request.h"
#include "net/http/server_state.h"

enum {
    STREAM_FRAME_BYTES = 16, /* before a piece: its size in hex and CRLF */
    FIRST_TURN_BYTES = WIRE_PIECE_BYTES,
    LARGE_BYTES = 512 * 1024, /* a turn more costs a tenth of a reply of 100 KiB */
    /* No parameters: the two say what fits a CPU's cache, whatever the cluster is for.  Who wants
     * another send buffer for all connections sets net.ipv4.tcp_wmem. */
    NEAR_RTT_US = 250,
    NEAR_SEND_BYTES = 256 * 1024, /* the kernel doubles it: 2 GB/s at NEAR_RTT_US */
};

static ssize_t conn_send(struct conn *c, const void *data, size_t len)
{
    return wire_wrote(c, send(c->fd, data, len, MSG_NOSIGNAL));
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

/* How much of the body comes next, at most. */
static size_t conn_piece(const struct conn *c)
{
    const struct reply *r = &c->req->reply;
    uint64_t left = r->length < 0 ? UINT64_MAX : (uint64_t)r->length - c->reply_at;
    return left < WIRE_PIECE_BYTES ? (size_t)left : WIRE_PIECE_BYTES;
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
    return wire_wrote(c, sendmsg(c->fd, &message, MSG_NOSIGNAL | (more ? MSG_MORE : 0)));
}

static enum conn_verdict conn_plain_head(struct conn *c, const struct buf *head)
{
    const struct reply *r = &c->req->reply;
    bool body = reply_has_body(c->req);
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

static enum conn_verdict conn_sealed_head(struct conn *c, struct buf *head)
{
    const struct reply *r = &c->req->reply;
    if (r->kind == REPLY_DATA && reply_has_body(c->req)) {
        c->reply_at = conn_piece(c);
        buf_append(head, r->data, (size_t)c->reply_at);
    }
    return wire_seal(c, head->data, head->len);
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
    return c->tls != NULL ? conn_sealed_head(c, head) : conn_plain_head(c, head);
}

/* --- the body --------------------------------------------------------------------------------- */

static enum conn_verdict conn_send_data(struct conn *c)
{
    const struct reply *r = &c->req->reply;
    ssize_t n = conn_send(c, r->data + c->reply_at, (size_t)r->length - (size_t)c->reply_at);
    if (n < 0)
        return CONN_CLOSE;
    c->reply_at += (uint64_t)n;
    return c->writable ? CONN_AGAIN : CONN_WAIT;
}

static enum conn_verdict conn_seal_data(struct conn *c)
{
    size_t len = conn_piece(c);
    const char *data = c->req->reply.data + c->reply_at;
    c->reply_at += len;
    return wire_seal(c, data, len);
}

static enum conn_verdict conn_seal_file(struct conn *c)
{
    const struct reply *r = &c->req->reply;
    struct buf *plain = &c->reactor->plain;
    ssize_t ready = request_file_ready(c->req, c->reply_at);
    if (ready <= 0)
        return ready == 0 ? CONN_WAIT : CONN_CLOSE;
    size_t len = (size_t)ready < conn_piece(c) ? (size_t)ready : conn_piece(c);
    buf_clear(plain);
    buf_reserve(plain, len);
    ssize_t n = pread(r->fd, plain->data, len, (off_t)(r->offset + c->reply_at));
    if (n <= 0)
        return n < 0 && errno == EINTR ? CONN_AGAIN : CONN_CLOSE; /* it is shorter than it was */
    c->reply_at += (uint64_t)n;
    return wire_seal(c, plain->data, (size_t)n);
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
    n = wire_wrote(c, n);
    if (n < 0)
        return CONN_CLOSE;
    c->reply_at += (uint64_t)n;
    return c->writable ? CONN_AGAIN : CONN_WAIT;
}

/* Where pieces of a stream are put together. */
static struct buf *conn_page(struct conn *c)
{
    return c->tls != NULL ? &c->reactor->plain : &c->out;
}

/* The page is complete; its text begins at `at`. */
static enum conn_verdict conn_send_page(struct conn *c, struct buf *page, size_t at)
{
    if (c->tls != NULL)
        return wire_seal(c, page->data + at, page->len - at);
    c->out_at = at;
    return CONN_AGAIN;
}

/* One chunk: its size is written before the data, where room was left for it. */
static size_t conn_frame_piece(struct buf *page, size_t len)
{
    char size[STREAM_FRAME_BYTES + 1];
    int n = snprintf(size, sizeof size, "%zx\r\n", len);
    size_t at = STREAM_FRAME_BYTES - (size_t)n;
    memcpy(page->data + at, size, (size_t)n);
    buf_append(page, "\r\n", 2);
    return at;
}

static enum conn_verdict conn_end_stream(struct conn *c, struct buf *page)
{
    if (!c->reply_chunked)
        return c->req->reply.length < 0 ? CONN_DONE : CONN_CLOSE;
    c->reply_ended = true;
    buf_puts(page, "0\r\n\r\n");
    return conn_send_page(c, page, 0);
}

/* HTTP_STREAM_COPY: it cannot be, or not now. */
static ssize_t conn_splice(struct conn *c)
{
    const struct reply *r = &c->req->reply;
    if (r->ops->splice == NULL || c->tls != NULL || r->length < 0)
        return HTTP_STREAM_COPY;
    uint64_t left = (uint64_t)r->length - c->reply_at;
    return request_stream_splice(c->req, c->fd, left < c->budget ? (size_t)left : c->budget);
}

static enum conn_verdict conn_spliced(struct conn *c, ssize_t n)
{
    if (n == HTTP_STREAM_FULL)
        c->writable = false;
    if (n < 0 && n != HTTP_STREAM_FULL)
        return CONN_CLOSE;
    if (n <= 0)
        return CONN_WAIT;
    c->reply_at += (uint64_t)wire_wrote(c, n);
    return CONN_AGAIN;
}

static enum conn_verdict conn_stream_piece(struct conn *c)
{
    ssize_t spliced = conn_splice(c);
    if (spliced != HTTP_STREAM_COPY)
        return conn_spliced(c, spliced);
    struct buf *page = conn_page(c);
    buf_clear(page);
    buf_reserve(page, STREAM_FRAME_BYTES + WIRE_PIECE_BYTES + 2);
    ssize_t n = request_stream_read(c->req, page->data + STREAM_FRAME_BYTES, conn_piece(c));
    if (n == 0)
        return CONN_WAIT;
    if (n < 0)
        return n == HTTP_STREAM_END ? conn_end_stream(c, page) : CONN_CLOSE;
    c->reply_at += (uint64_t)n;
    page->len = STREAM_FRAME_BYTES + (size_t)n;
    return conn_send_page(
        c, page, c->reply_chunked ? conn_frame_piece(page, (size_t)n) : STREAM_FRAME_BYTES);
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
        return wire_flush(c);
    if (c->req->reply.kind != REPLY_STREAM)
        c->req->sent_bytes = c->reply_at;
    if (conn_body_is_out(c))
        return CONN_DONE;
    switch (c->req->reply.kind) {
    case REPLY_DATA:
        return c->tls != NULL ? conn_seal_data(c) : conn_send_data(c);
    case REPLY_FILE:
        return c->tls != NULL ? conn_seal_file(c) : conn_send_file(c);
    default:
        return conn_stream_piece(c);
    }
}
