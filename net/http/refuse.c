#include "net/http/refuse.h"

#include <sys/socket.h>
#include <unistd.h>

#include "common/buf.h"
#include "net/http/closer.h"
#include "net/http/request.h"
#include "net/http/server_state.h"

static void put_alert(struct buf *out)
{
    /* A record of TLS 1.2 or 1.3 in plain text: fatal, internal_error (RFC 8446 section 6). */
    static const unsigned char alert[] = {21, 3, 3, 0, 2, 2, 80};
    buf_append(out, alert, sizeof alert);
}

static void put_503(const struct http_server *s, const struct error *err, struct buf *out)
{
    _cleanup_(buf_done)
    struct buf body = BUF_INIT;
    reply_error_json(s->node, "-", "", err, &body);
    buf_printf(out,
               "HTTP/1.1 503 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
               "Retry-After: 1\r\nX-Request-Id: -\r\nDfc-Node: %s\r\nConnection: close\r\n\r\n%s",
               http_status_text(503), body.len, s->node, buf_str(&body));
}

static void refuse(struct http_server *s, int fd, const struct error *err)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    if (s->tls != NULL)
        put_alert(&text);
    else
        put_503(s, err, &text);
    metric_add(s->overload, 1);
    if (send(fd, text.data, text.len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)text.len)
        closer_add(s->closer, fd);
    else
        close(fd);
}

void refuse_full(struct http_server *s, int fd)
{
    struct error err;
    error_set(&err, E_OVERLOAD, "the node has %u connections, its limit", s->connections_max);
    refuse(s, fd, &err);
}

void refuse_peer(struct http_server *s, int fd)
{
    struct error err;
    error_set(&err, E_OVERLOAD,
              "this address has %u connections to the node, %d%% of connections_max, the limit for "
              "one address: close some",
              s->peer_connections_max, SERVER_PEER_PERCENT);
    refuse(s, fd, &err);
}
