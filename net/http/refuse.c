#include "net/http/refuse.h"

#include <sys/socket.h>
#include <unistd.h>

#include "common/buf.h"
#include "net/http/closer.h"
#include "net/http/request.h"
#include "net/http/server_state.h"

static void refuse(struct http_server *s, int fd, const struct error *err)
{
    _cleanup_(buf_done)
    struct buf body = BUF_INIT;
    reply_error_json(s->node, "-", err, &body);
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    buf_printf(&text,
               "HTTP/1.1 503 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
               "Retry-After: 1\r\nX-Request-Id: -\r\nDfc-Node: %s\r\nConnection: close\r\n\r\n%s",
               http_status_text(503), body.len, s->node, buf_str(&body));
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
