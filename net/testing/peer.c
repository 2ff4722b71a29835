#include "net/testing/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/mem.h"

enum { PIECE = 64 * 1024, PATIENCE_S = 20 };

/* Scripts run in threads of their own, where cmocka cannot fail a test. */
static void require(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "the test's server: %s: %s\n", what, strerror(errno));
    abort();
}

static void set_patience(int fd)
{
    const struct timeval limit = {.tv_sec = PATIENCE_S};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

static void *peer_main(void *arg)
{
    struct peer *p = arg;
    p->script(p);
    return NULL;
}

void peer_start(struct peer *p, void (*script)(struct peer *p), void *ctx)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    *p = (struct peer){
        .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .script = script, .ctx = ctx};
    require(p->fd >= 0, "socket");
    require(bind(p->fd, (struct sockaddr *)&at, len) == 0, "bind");
    require(listen(p->fd, 128) == 0, "listen");
    require(getsockname(p->fd, (struct sockaddr *)&at, &len) == 0, "getsockname");
    p->port = ntohs(at.sin_port);
    set_patience(p->fd);
    require(pthread_create(&p->thread, NULL, peer_main, p) == 0, "start a thread");
}

void peer_stop(struct peer *p)
{
    shutdown(p->fd, SHUT_RDWR);
}

void peer_join(struct peer *p)
{
    pthread_join(p->thread, NULL);
    close(p->fd);
}

struct peer_conn *peer_accept(struct peer *p)
{
    struct peer_conn *c = xcalloc(1, sizeof *c);
    c->fd = (int)TEMP_FAILURE_RETRY(accept4(p->fd, NULL, NULL, SOCK_CLOEXEC));
    require(c->fd >= 0 || errno == EINVAL, "accept");
    if (c->fd < 0) {
        free(c);
        return NULL;
    }
    set_patience(c->fd);
    atomic_fetch_add(&p->accepted, 1);
    return c;
}

void peer_close(struct peer_conn *c)
{
    close(c->fd);
    buf_done(&c->in);
    buf_done(&c->head);
    buf_done(&c->body);
    free(c);
}

/* --- reading ---------------------------------------------------------------------------------- */

static bool fill(struct peer_conn *c)
{
    buf_reserve(&c->in, PIECE);
    ssize_t n = TEMP_FAILURE_RETRY(recv(c->fd, c->in.data + c->in.len, PIECE, 0));
    require(n >= 0 || errno == ECONNRESET, "receive");
    if (n <= 0)
        return false;
    c->in.len += (size_t)n;
    c->in.data[c->in.len] = '\0';
    return true;
}

static void consume(struct peer_conn *c, size_t len, struct buf *out)
{
    buf_append(out, c->in.data, len);
    memmove(c->in.data, c->in.data + len, c->in.len - len + 1);
    c->in.len -= len;
}

static bool take(struct peer_conn *c, size_t len, struct buf *out)
{
    while (len > 0) {
        if (c->in.len == 0 && !fill(c))
            return false;
        size_t n = c->in.len < len ? c->in.len : len;
        consume(c, n, out);
        len -= n;
    }
    return true;
}

static bool take_line(struct peer_conn *c, struct buf *out)
{
    const char *end;
    while (c->in.len == 0 || (end = strstr(c->in.data, "\r\n")) == NULL) {
        if (!fill(c))
            return false;
    }
    consume(c, (size_t)(end - c->in.data) + 2, out);
    return true;
}

bool peer_read_head(struct peer_conn *c)
{
    size_t before;
    buf_clear(&c->head);
    do {
        before = c->head.len;
        if (!take_line(c, &c->head))
            return false;
    } while (c->head.len - before > 2);
    return true;
}

static bool take_chunks(struct peer_conn *c)
{
    for (;;) {
        struct buf line = BUF_INIT, end = BUF_INIT;
        bool ok = take_line(c, &line);
        size_t size = ok ? strtoul(line.data, NULL, 16) : 0;
        ok = ok && take(c, size, &c->body) && take_line(c, &end);
        buf_done(&line);
        buf_done(&end);
        if (!ok || size == 0)
            return ok;
    }
}

bool peer_read_body(struct peer_conn *c)
{
    buf_clear(&c->body);
    if (peer_saw(c, "Transfer-Encoding: chunked"))
        return take_chunks(c);
    const char *length = strcasestr(c->head.data, "\r\nContent-Length:");
    size_t len = length != NULL ? strtoul(strchr(length, ':') + 1, NULL, 10) : 0;
    return take(c, len, &c->body);
}

bool peer_read_request(struct peer_conn *c)
{
    return peer_read_head(c) && peer_read_body(c);
}

size_t peer_read_some(struct peer_conn *c, char *out, size_t max)
{
    if (c->in.len == 0 && !fill(c))
        return 0;
    size_t n = c->in.len < max ? c->in.len : max;
    memcpy(out, c->in.data, n);
    memmove(c->in.data, c->in.data + n, c->in.len - n + 1);
    c->in.len -= n;
    return n;
}

bool peer_saw(const struct peer_conn *c, const char *text)
{
    return c->head.data != NULL && strcasestr(c->head.data, text) != NULL;
}

/* --- sending ---------------------------------------------------------------------------------- */

bool peer_send(struct peer_conn *c, const void *data, size_t len)
{
    const char *at = data;
    while (len > 0) {
        ssize_t n = TEMP_FAILURE_RETRY(send(c->fd, at, len, MSG_NOSIGNAL));
        require(n > 0 || errno == EPIPE || errno == ECONNRESET, "send");
        if (n < 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

bool peer_print(struct peer_conn *c, const char *fmt, ...)
{
    struct buf text = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    bool ok = peer_send(c, text.data, text.len);
    buf_done(&text);
    return ok;
}
