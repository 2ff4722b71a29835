#include "net/http/closer.h"

#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "common/mem.h"

enum {
    CLOSER_MS = 5000, /* the longest that one connection is kept for this */
    CLOSER_MAX = 512, /* connections; more are closed at once */
};

/* All in the loop's thread. */
struct closer {
    struct loop *loop;
    struct closing *first;
    unsigned count;
};

struct closing {
    struct closer *owner;
    int fd;
    uv_poll_t poll;
    struct loop_timer *timer;
    struct closing *next;
    struct closing *previous;
};

struct closer *closer_new(struct loop *loop)
{
    struct closer *l = xcalloc(1, sizeof *l);
    l->loop = loop;
    return l;
}

static void closing_closed(uv_handle_t *handle)
{
    struct closing *c = handle->data;
    close(c->fd);
    free(c);
}

static void closing_end(struct closing *c)
{
    struct closer *l = c->owner;
    if (c->previous != NULL)
        c->previous->next = c->next;
    else
        l->first = c->next;
    if (c->next != NULL)
        c->next->previous = c->previous;
    l->count--;
    loop_timer_free(c->timer);
    uv_close((uv_handle_t *)&c->poll, closing_closed);
}

static void closing_timeout(void *arg)
{
    closing_end(arg);
}

static void closing_readable(uv_poll_t *poll, int status, int events)
{
    (void)events;
    struct closing *c = poll->data;
    char scrap[65536];
    ssize_t n = status == 0 ? recv(c->fd, scrap, sizeof scrap, MSG_DONTWAIT) : 0;
    if (n <= 0)
        closing_end(c);
}

struct closer_message {
    struct closer *owner;
    int fd;
};

static void closer_begin(void *arg)
{
    struct closer_message m = *(struct closer_message *)arg;
    free(arg);
    struct closer *l = m.owner;
    struct closing *c = xcalloc(1, sizeof *c);
    c->poll.data = c;
    if (l->count == CLOSER_MAX || shutdown(m.fd, SHUT_WR) != 0 ||
        uv_poll_init(loop_uv(l->loop), &c->poll, m.fd) != 0) {
        close(m.fd);
        free(c);
        return;
    }
    c->owner = l;
    c->fd = m.fd;
    c->timer = loop_timer_new(l->loop, closing_timeout, c);
    loop_timer_start(c->timer, CLOSER_MS, 0);
    uv_poll_start(&c->poll, UV_READABLE, closing_readable);
    c->next = l->first;
    if (c->next != NULL)
        c->next->previous = c;
    l->first = c;
    l->count++;
}

void closer_add(struct closer *l, int fd)
{
    struct closer_message *m = xmalloc(sizeof *m);
    *m = (struct closer_message){.owner = l, .fd = fd};
    loop_post(l->loop, closer_begin, m);
}

static void closer_end_all(void *arg)
{
    struct closer *l = arg;
    while (l->first != NULL)
        closing_end(l->first);
}

void closer_free(struct closer *l)
{
    if (l == NULL)
        return;
    loop_call(l->loop, closer_end_all, l);
    free(l);
}
