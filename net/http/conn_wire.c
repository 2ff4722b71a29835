/* A connection of a listener that speaks TLS begins with
 *
 *   CONN_HELLO ──a handshake comes, a slot is free──▶ CONN_HANDSHAKE ──done──▶ CONN_HEAD
 *        └─────plain HTTP─────▶ CONN_HEAD, where it is refused
 *
 * and is a connection like others from then on.  A reactor has slots for so many handshakes; the
 * connection that has none waits for one, and costs no memory of TLS meanwhile. */
#include "net/http/conn_wire.h"

#include <errno.h>
#include <sys/socket.h>

#include "common/log.h"
#include "net/http/reactor_lists.h"
#include "net/http/server_state.h"
#include "net/tls/session.h"

enum { HANDSHAKE_RECORD = 0x16 }; /* the first byte of a ClientHello's (RFC 8446 section 5.1) */

ssize_t wire_recv(struct conn *c, char *to, size_t room)
{
    return c->tls != NULL ? tls_session_read(c->tls, to, room, c->peer_done)
                          : recv(c->fd, to, room, 0);
}

bool wire_is_drained(const struct conn *c, ssize_t n, size_t room)
{
    if (c->tls != NULL)
        return tls_session_is_drained(c->tls);
    return n < 0 ? errno == EAGAIN : (size_t)n < room && !c->peer_done;
}

ssize_t wire_wrote(struct conn *c, ssize_t n)
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

enum conn_verdict wire_flush(struct conn *c)
{
    ssize_t n =
        wire_wrote(c, send(c->fd, c->out.data + c->out_at, c->out.len - c->out_at, MSG_NOSIGNAL));
    if (n < 0)
        return CONN_CLOSE;
    c->out_at += (size_t)n;
    if (c->out_at == c->out.len) {
        buf_clear(&c->out);
        c->out_at = 0;
    }
    return c->writable ? CONN_AGAIN : CONN_WAIT;
}

enum conn_verdict wire_seal(struct conn *c, const void *data, size_t len)
{
    return tls_session_write(c->tls, data, len) ? CONN_AGAIN : CONN_CLOSE;
}

enum conn_verdict wire_say(struct conn *c, const char *text, size_t len)
{
    if (c->tls == NULL)
        return send(c->fd, text, len, MSG_NOSIGNAL) == (ssize_t)len ? CONN_AGAIN : CONN_CLOSE;
    enum conn_verdict verdict = wire_seal(c, text, len);
    if (verdict == CONN_AGAIN)
        verdict = wire_flush(c);
    return verdict == CONN_CLOSE ? verdict : CONN_AGAIN; /* what is left goes out before a read */
}

/* --- the beginning and the end of TLS --------------------------------------------------------- */

static enum conn_verdict hello(struct conn *c)
{
    if (!reactor_takes_handshake(c->reactor, c))
        return CONN_WAIT;
    c->tls = tls_session_new(c->reactor->server->tls, c->fd, &c->out);
    if (c->tls == NULL)
        return CONN_CLOSE;
    c->state = CONN_HANDSHAKE;
    return CONN_AGAIN;
}

enum conn_verdict wire_hello_step(struct conn *c)
{
    if (!c->readable)
        return CONN_WAIT;
    unsigned char first;
    ssize_t n = recv(c->fd, &first, 1, MSG_PEEK);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        c->readable = errno == EINTR;
        return c->readable ? CONN_AGAIN : CONN_WAIT;
    }
    if (n <= 0)
        return CONN_CLOSE;
    if (first == HANDSHAKE_RECORD)
        return hello(c);
    c->state = CONN_HEAD;
    return CONN_AGAIN;
}

static enum conn_verdict handshake_failed(struct conn *c, const struct error *err)
{
    metric_add(c->reactor->server->handshakes_failed, 1);
    log_debug("no TLS with a client", lerr(err));
    return CONN_LINGER; /* or a reset overtakes the alert */
}

enum conn_verdict wire_handshake_step(struct conn *c)
{
    struct error err = ERROR_INIT;
    if (!c->readable && c->out.len == 0)
        return CONN_WAIT;
    enum tls_shake shake = tls_session_shake(c->tls, c->peer_done, &err);
    if (c->out.len > 0 && wire_flush(c) == CONN_CLOSE)
        return CONN_CLOSE;
    if (shake == TLS_FAILED)
        return handshake_failed(c, &err);
    if (shake == TLS_SHAKEN) {
        reactor_shaken(c->reactor, c);
        c->state = CONN_HEAD;
        return CONN_AGAIN;
    }
    c->readable = false;
    return CONN_WAIT;
}

void wire_end(struct conn *c)
{
    if (c->tls == NULL)
        return;
    tls_session_end(c->tls);
    if (c->out.len > 0)
        wire_flush(c); /* as much as fits: the peer is not waited for */
    tls_session_free(steal(c->tls));
}
