#include "net/http/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>
#include <uv.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"

enum {
    LISTENER_BACKLOG = 4096, /* the kernel cuts it to net.core.somaxconn */
    LISTENER_BURST = 64,     /* connections accepted in one go */
    LISTENER_PAUSE_MS = 50,  /* when the process is out of descriptors */
    LISTENER_COMPLAINT_MS = 10000,
};

struct listener {
    struct loop *loop;
    int fd;
    uint16_t port;
    listener_fn *fn;
    void *arg;
    uv_poll_t poll;
    struct loop_timer *pause;
    uint64_t complained_ms;
};

static void listener_readable(uv_poll_t *poll, int status, int events);

static void listener_go_on(void *arg)
{
    struct listener *l = arg;
    uv_poll_start(&l->poll, UV_READABLE, listener_readable);
}

/* Out of descriptors or memory: connections wait in the backlog meanwhile. */
static void listener_stand_back(struct listener *l, int errnum)
{
    struct error err = ERROR_INIT;
    error_errno(&err, errnum, "accept");
    if (l->complained_ms == 0 || clock_ms() - l->complained_ms >= LISTENER_COMPLAINT_MS) {
        log_warn("connections cannot be accepted", li64("port", l->port), lerr(&err));
        l->complained_ms = clock_ms();
    }
    uv_poll_stop(&l->poll);
    loop_timer_start(l->pause, LISTENER_PAUSE_MS, 0);
}

/* 0, or why there is none. */
static int accept_one(struct listener *l)
{
    struct sockaddr_storage peer;
    socklen_t len = sizeof peer;
    int fd = accept4(l->fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return errno;
    l->fn(l->arg, fd, (const struct sockaddr *)&peer, len);
    return 0;
}

static void listener_accept(struct listener *l)
{
    int errnum = 0;
    for (int i = 0; i < LISTENER_BURST && errnum == 0; i++)
        errnum = accept_one(l);
    if (errnum == EMFILE || errnum == ENFILE || errnum == ENOBUFS || errnum == ENOMEM)
        listener_stand_back(l, errnum);
}

static void listener_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    listener_accept(poll->data);
}

static int listener_resolve(const char *address, uint16_t port, struct addrinfo **out,
                            struct error *err)
{
    char service[8];
    snprintf(service, sizeof service, "%u", port);
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
    int rc = getaddrinfo(address, service, &hints, out);
    if (rc != 0)
        return error_set(err, E_INVALID, "listen address '%s': %s", address, gai_strerror(rc));
    return 0;
}

static uint16_t socket_port(int fd)
{
    struct sockaddr_storage own = {0};
    socklen_t len = sizeof own;
    getsockname(fd, (struct sockaddr *)&own, &len);
    return ntohs(own.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&own)->sin6_port
                                           : ((struct sockaddr_in *)&own)->sin_port);
}

static int listener_open(const char *address, uint16_t port, int *out, struct error *err)
{
    struct addrinfo *info;
    int rc = listener_resolve(address, port, &info, err);
    if (rc != 0)
        return rc;
    _cleanup_close_ int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int one = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
        bind(fd, info->ai_addr, info->ai_addrlen) != 0 || listen(fd, LISTENER_BACKLOG) != 0)
        rc = error_errno(err, errno, "listen on %s port %u", address, port);
    freeaddrinfo(info);
    if (rc == 0)
        *out = steal_fd(&fd);
    return rc;
}

static void listener_start(void *arg)
{
    struct listener *l = arg;
    uv_poll_init(loop_uv(l->loop), &l->poll, l->fd);
    l->poll.data = l;
    l->pause = loop_timer_new(l->loop, listener_go_on, l);
    listener_go_on(l);
}

int listener_new(struct loop *loop, const char *address, uint16_t port, listener_fn *fn, void *arg,
                 struct listener **out, struct error *err)
{
    int fd;
    int rc = listener_open(address, port, &fd, err);
    if (rc != 0)
        return rc;
    struct listener *l = xcalloc(1, sizeof *l);
    *l = (struct listener){.loop = loop, .fd = fd, .port = socket_port(fd), .fn = fn, .arg = arg};
    *out = l; /* the first connection may come before this returns */
    loop_call(loop, listener_start, l);
    return 0;
}

uint16_t listener_port(const struct listener *l)
{
    return l->port;
}

static void listener_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void listener_stop(void *arg)
{
    struct listener *l = arg;
    int errnum = 0;
    loop_timer_free(l->pause);
    uv_close((uv_handle_t *)&l->poll, listener_closed);
    /* Whom the kernel has let in already: the close resets all others.  More may keep coming. */
    for (int i = 0; i < LISTENER_BACKLOG && (errnum == 0 || errnum == ECONNABORTED); i++)
        errnum = accept_one(l);
    close(l->fd);
}

void listener_free(struct listener *l)
{
    if (l != NULL)
        loop_call(l->loop, listener_stop, l);
}
