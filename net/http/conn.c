/* A connection is a small machine that its reactor turns:
 *
 *        ┌───────────────────────────── keep-alive ──────────────────────────────┐
 *        ▼                                                                        │
 *   CONN_HEAD ──head read──▶ CONN_REQUEST ──reply published──▶ CONN_REPLY ──▶ CONN_DRAIN
 *                                                                  └──▶ CONN_CLOSING
 *
 * Each state has one step function; it moves the machine on (CONN_AGAIN) or says why it cannot.
 * A turn ends when a step cannot, or when the budget of bytes is used up, so that a fast client
 * does not keep the thread.  The turn in which the body of a large reply begins is a short one.
 *
 * Input is read into memory that all connections of the reactor share; a connection that does not
 * use up what it has read keeps the rest between turns in memory of its own.  So idle connections
 * cost nothing, and uploads are read in large pieces.
 *
 * A reply that comes before its request's body has been read is sent at once.  What is left of the
 * body is then read away if it is short; else the connection is closed slowly (CONN_CLOSING):
 * close() with unread bytes in the socket sends a reset, and a reset can overtake the reply (RFC
 * 9112 section 9.6).  So the write side is closed first, and input is thrown away until the peer
 * closes or the idle time is over.
 *
 * A client that expects "100 Continue" and gets another reply may send its body or not, so that its
 * connection must end.  A new one costs more than a short body: that is asked for, and thrown away
 * before the reply (CONN_UNWANTED).
 *
 * While a request sleeps its connection is not looked at, so a client that goes away is noticed
 * only after the wake-up: that is what keeps a parked request alive until its reply. */
#include "net/http/conn.h"

#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "net/http/conn_input.h"
#include "net/http/conn_pace.h"
#include "net/http/conn_wire.h"
#include "net/syntax/head.h"
#include "net/http/reactor_lists.h"
#include "net/http/request.h"
#include "net/http/server_state.h"
#include "net/tls/session.h"

enum {
    CONN_TURN_BYTES = 1024 * 1024,
    CONN_REQUEST_COST = 32 * 1024,         /* of a turn's bytes, for each request */
    HEAD_LINE_SPARE = SERVER_URI_MAX + 64, /* beside the headers, which have their own limit */
};

/* --- sleeping --------------------------------------------------------------------------------- */

static void conn_sleep(struct http_request *req)
{
    struct conn *c = req->connection;
    c->asleep = true;
}

static void conn_wake(struct http_request *req)
{
    struct conn *c = req->connection;
    reactor_wake(c->reactor, c);
}

bool conn_rouse(struct conn *c)
{
    if (c->dozing) {
        c->dozing = false;
        c->asleep = !request_rouse(c->req);
    }
    return !c->asleep;
}

const struct request_link conn_request_link = {.sleep = conn_sleep, .wake = conn_wake};

/* --- the head --------------------------------------------------------------------------------- */

static void conn_new_request(struct conn *c)
{
    c->req = request_new(c->reactor->server, &conn_request_link, c);
    c->req->peer = (const struct sockaddr *)&c->peer;
    c->keep_alive = false;
    c->chunked = false;
    c->continued = true;
    c->body_left = 0;
}

static void conn_speaks(struct conn *c)
{
    if (c->spoke)
        return;
    server_connection_spoke(c->reactor->server);
    reactor_spoke(c->reactor, c);
}

/* Where the next request would begin is not certain, so the connection ends with this one. */
static enum conn_verdict conn_refuse(struct conn *c, const struct error *err)
{
    if (c->req == NULL)
        conn_new_request(c);
    c->keep_alive = false;
    c->chunked = false;
    c->body_left = UINT64_MAX;
    c->state = CONN_REQUEST;
    request_refuse(c->req, err);
    conn_speaks(c);
    return CONN_AGAIN;
}

/* A chunked body in a request of HTTP/1.0 says that somebody on the way did not understand it
 * (RFC 9112 section 6.1). */
static int conn_check_version(const struct head *head, const struct http_request *req,
                              struct error *err)
{
    if (head->minor == 0 && req->content_length < 0)
        return error_set(err, E_INVALID, "Transfer-Encoding in a request of HTTP/1.0");
    return 0;
}

static int conn_check_host(const struct head *head, struct error *err)
{
    size_t hosts = 0;
    for (size_t i = 0; i < head->count; i++)
        hosts += strcasecmp(head->fields[i].name, "Host") == 0;
    if (hosts > 1 || (hosts == 0 && head->minor == 1))
        return error_set(err, E_INVALID, "%s Host header", hosts > 1 ? "more than one" : "no");
    return 0;
}

static int conn_take_head(struct conn *c, const struct head *head, struct error *err)
{
    struct http_request *req = c->req;
    request_set_target(req, http_method_parse(head->method), head->target);
    for (size_t i = 0; i < head->count; i++)
        request_add_header(req, head->fields[i].name, head->fields[i].value);
    int rc = conn_check_host(head, err);
    if (rc == 0)
        rc = request_check_headers(req, err);
    if (rc == 0)
        rc = conn_check_version(head, req, err);
    if (rc != 0)
        return rc;
    bool http_1_0 = head->minor == 0;
    const char *options = http_header_list(req, "Connection");
    bool close = options != NULL && http_list_has(options, "close");
    bool keep = options != NULL && http_list_has(options, "keep-alive");
    c->http_1_0 = http_1_0;
    c->keep_alive = !close && (keep || !http_1_0);
    c->chunked = req->content_length < 0;
    c->chunks = CHUNKS_INIT;
    c->pace = (struct body_pace){.runs = false};
    c->body_left = c->chunked ? 0 : (uint64_t)req->content_length;
    c->continued = !req->expects_continue || http_1_0;
    return 0;
}

/* The head is in[0..len). */
static enum conn_verdict conn_begin_request(struct conn *c, size_t len)
{
    conn_new_request(c);
    char *text = arena_bytes(c->req->arena, len);
    memcpy(text, c->in, len);
    conn_input_consume(c, len);
    c->head_scanned = 0;
    c->head_begun = false;
    c->budget -= CONN_REQUEST_COST < c->budget ? CONN_REQUEST_COST : c->budget;
    reactor_touch(c->reactor, c);
    struct head head;
    struct error err = ERROR_INIT;
    int rc = head_parse(text, len, &head, &err);
    if (rc == 0)
        rc = conn_take_head(c, &head, &err);
    if (rc != 0)
        return conn_refuse(c, &err);
    c->state = CONN_REQUEST;
    request_begin(c->req);
    conn_speaks(c);
    c->proven = c->proven || c->req->proven;
    if (!c->proven && server_asks_for_proof(c->reactor->server))
        c->keep_alive = false; /* one request: a stranger holds no connection */
    return conn_rests(c) ? CONN_WAIT : CONN_AGAIN;
}

static int conn_head_too_large(const struct conn *c, struct error *err)
{
    const char *line_end = memchr(c->in, '\n', c->in_len);
    if (line_end == NULL || line_end - c->in > HEAD_LINE_SPARE)
        return error_set(err, E_URI_TOO_LONG, "the request line is longer than %d bytes",
                         HEAD_LINE_SPARE);
    return error_set(err, E_HEADERS_TOO_LARGE, "the headers are longer than %zu bytes",
                     c->reactor->server->headers_max);
}

/* RFC 9112 section 2.2: empty lines before a request are passed over.  Whether more than (the
 * beginning of) such a line is there. */
static bool conn_skip_empty_lines(struct conn *c)
{
    while (c->head_scanned == 0 && c->in_len >= 2 && memcmp(c->in, "\r\n", 2) == 0)
        conn_input_consume(c, 2);
    return c->in_len > 1 || (c->in_len == 1 && c->in[0] != '\r');
}

/* The time for a head counts from its first byte, all of it: what is empty before it does not keep
 * an idle connection. */
static void conn_note_head(struct conn *c)
{
    if (c->head_begun || !conn_skip_empty_lines(c))
        return;
    c->head_begun = true;
    reactor_touch(c->reactor, c);
}

static enum conn_verdict conn_refuse_plain(struct conn *c)
{
    struct error err;
    error_set(&err, E_INVALID, "this is plain HTTP, the port speaks TLS: use https://");
    return conn_refuse(c, &err);
}

static enum conn_verdict conn_head_step(struct conn *c)
{
    if (c->tls == NULL && c->reactor->server->tls != NULL)
        return conn_refuse_plain(c);
    bool any = conn_skip_empty_lines(c);
    if (any && !head_may_begin(c->in[0])) {
        struct error err;
        error_set(&err, E_INVALID, "this is not HTTP (TLS is not spoken here)");
        return conn_refuse(c, &err);
    }
    size_t len = any ? head_end(c->in, c->in_len, &c->head_scanned) : 0;
    size_t max = c->reactor->server->headers_max + HEAD_LINE_SPARE;
    if (len > max || (len == 0 && c->in_len > max)) {
        struct error err;
        conn_head_too_large(c, &err);
        return conn_refuse(c, &err);
    }
    if (len > 0)
        return conn_begin_request(c, len);
    enum conn_verdict verdict = conn_input_read(c);
    conn_note_head(c);
    return verdict;
}

/* --- the body --------------------------------------------------------------------------------- */

static bool conn_body_ended(const struct conn *c)
{
    return c->chunked ? chunk_ended(&c->chunks) : c->body_left == 0;
}

/* Bytes of the body at the beginning of the input; the framing before them is passed over. */
static int conn_body_input(struct conn *c, size_t *len, struct error *err)
{
    if (!c->chunked) {
        *len = c->in_len < c->body_left ? c->in_len : (size_t)c->body_left;
        return 0;
    }
    const char *data;
    ssize_t framing = chunk_next(&c->chunks, c->in, c->in_len, &data, len, err);
    if (framing < 0)
        return (int)framing;
    conn_input_consume(c, (size_t)framing);
    return 0;
}

/* A body that is thrown away is no progress: the idle time bounds all of it. */
static void conn_body_used(struct conn *c, size_t len)
{
    conn_input_consume(c, len);
    c->continued = true;
    if (c->chunked)
        chunk_used(&c->chunks, len);
    else
        c->body_left -= len;
    if (len > 0 && c->state == CONN_REQUEST)
        reactor_touch(c->reactor, c);
}

/* The client waits for this before it sends.  The socket has room: the last reply is out. */
static enum conn_verdict conn_continue(struct conn *c)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    c->continued = true;
    return wire_say(c, text, sizeof text - 1);
}

static enum conn_verdict conn_read_or_doze(struct conn *c)
{
    enum conn_verdict verdict = conn_input_read(c);
    if (verdict != CONN_WAIT)
        return verdict;
    c->dozing = request_doze(c->req);
    return c->dozing ? CONN_WAIT : CONN_AGAIN;
}

/* Then the request fails: whatever it holds, disk and a connection, is others' again. */
static bool conn_body_is_slow(struct conn *c, size_t taken)
{
    const struct body_rate *rate = &c->reactor->server->body_rate;
    struct error err;
    if (body_pace_keeps(&c->pace, rate, clock_ms(), taken))
        return false;
    error_set(&err, E_REQUEST_TIMEOUT,
              "the body comes too slowly: fewer than %llu bytes a second over %llu s",
              (unsigned long long)rate->bytes_per_s, (unsigned long long)rate->window_ms / 1000);
    c->keep_alive = false;
    request_fail_body(c->req, &err);
    return true;
}

static enum conn_verdict conn_body_step(struct conn *c)
{
    struct http_request *req = c->req;
    if (request_aborted(req))
        return CONN_CLOSE;
    size_t len = 0;
    struct error err = ERROR_INIT;
    if (conn_body_input(c, &len, &err) != 0) {
        c->keep_alive = false;
        request_fail_body(req, &err);
        return CONN_AGAIN;
    }
    if (conn_body_ended(c)) {
        request_body_ended(req);
        return CONN_AGAIN;
    }
    if (len == 0)
        return c->continued || c->in_len > 0 ? conn_read_or_doze(c) : conn_continue(c);
    size_t taken = request_take(req, c->in, len);
    conn_body_used(c, taken);
    if (taken < len)
        body_pace_pause(&c->pace);
    else if (!conn_body_ended(c) && conn_body_is_slow(c, taken))
        return CONN_AGAIN;
    return taken < len && request_sleep(req) ? CONN_WAIT : CONN_AGAIN;
}

/* The reply is out; the next request begins behind this one's body. */
static enum conn_verdict conn_drain_step(struct conn *c)
{
    size_t len = 0;
    if (conn_body_input(c, &len, NULL) != 0)
        return CONN_LINGER;
    if (conn_body_ended(c)) {
        c->state = CONN_HEAD;
        return CONN_AGAIN;
    }
    if (len == 0)
        return conn_input_read(c);
    conn_body_used(c, len);
    return CONN_AGAIN;
}

/* --- the end ---------------------------------------------------------------------------------- */

static void conn_close_slowly(struct conn *c)
{
    conn_speaks(c);
    if (c->req != NULL)
        request_end(steal(c->req));
    wire_end(c);
    buf_done(&c->out);
    free(steal(c->saved));
    c->in_len = 0;
    c->state = CONN_CLOSING;
    if (shutdown(c->fd, SHUT_WR) != 0)
        conn_free(c);
    else if (c->readable)
        reactor_again(c->reactor, c);
}

/* Bytes that are thrown away are no progress: the idle time bounds the whole state. */
static enum conn_verdict conn_closing_step(struct conn *c)
{
    enum conn_verdict verdict = conn_input_read(c);
    c->in_len = 0;
    return verdict;
}

/* --- the machine ------------------------------------------------------------------------------ */

/* A client that has not been told to go on may send its body or not: there is no telling where the
 * next request begins. */
static enum conn_verdict conn_reply(struct conn *c)
{
    bool ended = conn_body_ended(c);
    bool short_rest = !c->chunked && c->body_left <= SERVER_DRAIN_MAX && c->continued;
    if ((!ended && !short_rest) || server_keeps_no_connection(c->reactor->server))
        c->keep_alive = false;
    c->state = CONN_REPLY;
    return conn_reply_begin(c);
}

static enum conn_verdict conn_request_step(struct conn *c)
{
    switch (request_state(c->req)) {
    case REQUEST_BODY:
        return conn_body_step(c);
    case REQUEST_NEW:
    case REQUEST_OWED:
        return request_sleep(c->req) ? CONN_WAIT : CONN_AGAIN;
    case REQUEST_REPLIED:
        break;
    }
    bool expected = !c->continued && !c->chunked && c->body_left > 0;
    if (expected && c->keep_alive && c->body_left <= SERVER_EXPECTED_MAX) {
        c->state = CONN_UNWANTED;
        return conn_continue(c);
    }
    return conn_reply(c);
}

/* The body of a request that has its reply already. */
static enum conn_verdict conn_unwanted_step(struct conn *c)
{
    if (conn_body_ended(c))
        return conn_reply(c);
    if (c->in_len == 0)
        return conn_input_read(c);
    conn_body_used(c, c->in_len < c->body_left ? c->in_len : (size_t)c->body_left);
    return CONN_AGAIN;
}

/* The reply has been written. */
static enum conn_verdict conn_replied(struct conn *c)
{
    bool ended = conn_body_ended(c);
    request_end(steal(c->req));
    buf_done(&c->out);
    if (!c->keep_alive)
        return ended && c->in_len == 0 && !c->readable && c->tls == NULL ? CONN_CLOSE : CONN_LINGER;
    c->state = ended ? CONN_HEAD : CONN_DRAIN;
    return CONN_AGAIN;
}

static enum conn_verdict conn_step(struct conn *c)
{
    switch (c->state) {
    case CONN_HELLO:
        return wire_hello_step(c);
    case CONN_HANDSHAKE:
        return wire_handshake_step(c);
    case CONN_HEAD:
        return conn_head_step(c);
    case CONN_REQUEST:
        return conn_request_step(c);
    case CONN_UNWANTED:
        return conn_unwanted_step(c);
    case CONN_DRAIN:
        return conn_drain_step(c);
    case CONN_CLOSING:
        return conn_closing_step(c);
    case CONN_REPLY:
        break;
    }
    enum conn_verdict verdict = conn_reply_step(c);
    return verdict == CONN_DONE ? conn_replied(c) : verdict;
}

void conn_run(struct conn *c)
{
    enum conn_verdict verdict = CONN_AGAIN;
    c->budget = CONN_TURN_BYTES;
    if (conn_rests(c))
        return;
    conn_input_borrow(c);
    while (verdict == CONN_AGAIN && c->budget > 0)
        verdict = conn_step(c);
    conn_input_return(c);
    if (verdict == CONN_AGAIN)
        reactor_again(c->reactor, c);
    else if (verdict == CONN_LINGER)
        conn_close_slowly(c);
    else if (verdict != CONN_WAIT)
        conn_free(c);
}

/* A peer whose machine is gone says nothing, and acknowledges nothing. */
static void conn_probe_peer(const struct conn *c)
{
    static const int on = 1, idle_s = 10, interval_s = 5;
    setsockopt(c->fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(c->fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    setsockopt(c->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

/* An idle connection is closed, and so is one whose peer does not read; one that has begun to send
 * is told why.  One whose request is patient goes on waiting. */
void conn_timeout(struct conn *c)
{
    struct error err;
    if (c->req != NULL && request_is_patient(c->req)) {
        conn_probe_peer(c);
        reactor_touch(c->reactor, c);
        conn_run(c);
        return;
    }
    if (c->spoke)
        error_set(&err, E_REQUEST_TIMEOUT, "nothing came for %llu s",
                  (unsigned long long)c->reactor->timeout_ms / 1000);
    else
        error_set(&err, E_REQUEST_TIMEOUT, "the connection's first head took more than %llu s",
                  (unsigned long long)reactor_head_timeout_ms(c->reactor) / 1000);
    if (c->state == CONN_HEAD && c->in_len > 0) {
        conn_refuse(c, &err);
    } else if (c->state == CONN_REQUEST) {
        c->keep_alive = false;
        request_fail_body(c->req, &err);
    } else {
        conn_free(c);
        return;
    }
    reactor_touch(c->reactor, c);
    conn_run(c);
}

bool conn_is_silent(const struct conn *c)
{
    char one;
    return c->state <= CONN_HEAD && !c->is_ready &&
           recv(c->fd, &one, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
}

struct conn *conn_new(struct reactor *r, int fd, const struct sockaddr *peer, socklen_t peer_len)
{
    struct conn *c = xcalloc(1, sizeof *c);
    c->reactor = r;
    c->fd = fd;
    c->state = r->server->tls != NULL ? CONN_HELLO : CONN_HEAD;
    memcpy(&c->peer, peer, peer_len < sizeof c->peer ? peer_len : sizeof c->peer);
    int one = 1; /* replies are written whole: what is small must not wait for an answer */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return c;
}

/* To a client of HTTP/1.0 the end of the connection may be the end of the body: one that is cut
 * must end otherwise. */
static void conn_reset_if_cut(const struct conn *c)
{
    static const struct linger reset = {.l_onoff = 1, .l_linger = 0};
    if (c->state == CONN_REPLY && c->req != NULL && c->req->reply.length < 0 && !c->reply_chunked &&
        reply_has_body(c->req))
        (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
}

void conn_free(struct conn *c)
{
    conn_speaks(c); /* it will not any more */
    conn_reset_if_cut(c);
    if (c->req != NULL)
        request_end(c->req);
    reactor_forget(c->reactor, c);
    tls_session_free(c->tls);
    close(c->fd);
    buf_done(&c->out);
    free(c->saved);
    free(c);
}
