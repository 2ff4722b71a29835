/* hiredis makes the bytes of commands and reads those of replies.  The socket is our own: hiredis
 * 0.14 writes without MSG_NOSIGNAL, and does not tell what was sent before an error. */
#include "mount/meta/redis_link.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/mem.h"

enum { RECEIVE = 65536 };

struct redis_link {
    int fd;
    redisReader *reader;
    char bytes[RECEIVE];
};

/* ---- open ---- */

static void set_options(int fd, unsigned timeout_ms)
{
    const struct timeval limit = {timeout_ms / 1000, (suseconds_t)(timeout_ms % 1000) * 1000};
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit); /* also of connect() */
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static int connect_one(const struct addrinfo *a, unsigned timeout_ms)
{
    _cleanup_close_ int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    if (fd < 0)
        return -errno;
    set_options(fd, timeout_ms);
    if (connect(fd, a->ai_addr, a->ai_addrlen) != 0)
        return errno == EINPROGRESS ? -ETIMEDOUT : -errno;
    int connected = fd;
    fd = -1;
    return connected;
}

static int connect_to(const struct redis_place *p, unsigned timeout_ms, struct error *err)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list;
    int rc = getaddrinfo(p->host, p->port, &hints, &list);
    if (rc != 0)
        return error_set(err, E_NET, "Redis server %s:%s: %s", p->host, p->port, gai_strerror(rc));
    int fd = -ENOENT;
    for (const struct addrinfo *a = list; a != NULL && fd < 0; a = a->ai_next)
        fd = connect_one(a, timeout_ms);
    freeaddrinfo(list);
    if (fd < 0)
        return error_set(err, E_NET, "Redis server %s:%s: %s", p->host, p->port, strerror(-fd));
    return fd;
}

int redis_link_open(const struct redis_place *place, unsigned timeout_ms, struct redis_link **out,
                    struct error *err)
{
    int fd = connect_to(place, timeout_ms, err);
    if (fd < 0)
        return fd;
    struct redis_link *l = xmalloc(sizeof *l);
    l->fd = fd;
    l->reader = redisReaderCreate();
    *out = l;
    return 0;
}

void redis_link_close(struct redis_link *l)
{
    if (l == NULL)
        return;
    redisReaderFree(l->reader);
    close(l->fd);
    free(l);
}

bool redis_link_is_idle(const struct redis_link *l)
{
    char byte;
    ssize_t got = recv(l->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

/* ---- calls ---- */

static int send_all(struct redis_link *l, const char *bytes, size_t size, struct error *err)
{
    while (size > 0) {
        ssize_t sent = send(l->fd, bytes, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return error_set(err, E_NET, "send to the Redis server: %s",
                             errno == EAGAIN ? "no progress in time" : strerror(errno));
        bytes += sent;
        size -= (size_t)sent;
    }
    return 0;
}

static int receive(struct redis_link *l, redisReply **out, struct error *err)
{
    void *reply = NULL;
    for (;;) {
        if (redisReaderGetReply(l->reader, &reply) != REDIS_OK)
            return error_set(err, E_IN_DOUBT, "reply of the Redis server: %s", l->reader->errstr);
        *out = reply;
        if (reply != NULL)
            return 0;
        ssize_t got = recv(l->fd, l->bytes, sizeof l->bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            return error_set(err, E_IN_DOUBT, "the Redis server closed the connection");
        if (got < 0)
            return error_set(err, E_IN_DOUBT, "reply of the Redis server: %s",
                             errno == EAGAIN ? "none in time" : strerror(errno));
        redisReaderFeed(l->reader, l->bytes, (size_t)got);
    }
}

int redis_link_call(struct redis_link *l, const struct redis_words *words, redisReply **out,
                    struct error *err)
{
    char *command = NULL;
    /* hiredis takes pointers to const text that it does not change. */
    long long size = redisFormatCommandArgv(&command, (int)words->count, (const char **)words->text,
                                            words->sizes);
    if (size < 0)
        return error_set(err, E_NOMEM, "command to the Redis server: out of memory");
    int rc = send_all(l, command, (size_t)size, err);
    redisFreeCommand(command);
    return rc != 0 ? rc : receive(l, out, err);
}
