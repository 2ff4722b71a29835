/* One round of the reactor may hold an event of a guest that leaves before its turn.  So memory is
 * freed at the round's end, and until then such an event does nothing. */
#include "net/http/guest.h"

#include <assert.h>
#include <sys/epoll.h>

#include "common/mem.h"
#include "net/http/conn.h"
#include "net/http/reactor_lists.h"

#define GUEST_MAGIC 0x67756573u

struct http_guest {
    struct reactor_source source;
    unsigned magic;
    struct reactor *reactor;
    int fd;
    const struct http_guest_ops *ops; /* NULL: it has left */
    void *ctx;
    struct http_guest *next, **prev;
};

static struct reactor *reactor_of(const struct http_request *req)
{
    const struct conn *c = req->connection;
    return c->reactor;
}

const struct reactor *http_request_thread(const struct http_request *req)
{
    return reactor_of(req);
}

const struct reactor *http_guest_thread(const struct http_guest *g)
{
    return g->reactor;
}

bool http_may_host(const struct http_request *req)
{
    return req->link == &conn_request_link;
}

void http_here(struct http_request *req, struct reactor_job *job)
{
    struct reactor *r = reactor_of(req);
    if (reactor_is_here(r))
        job->run(r, job);
    else
        reactor_run(r, job);
}

/* --- coming and going ------------------------------------------------------------------------- */

static void enlist(struct http_guest *g, struct http_guest **list)
{
    g->next = *list;
    g->prev = list;
    if (g->next != NULL)
        g->next->prev = &g->next;
    *list = g;
}

static void delist(struct http_guest *g)
{
    *g->prev = g->next;
    if (g->next != NULL)
        g->next->prev = g->prev;
}

static void guest_event(struct reactor_source *source, uint32_t events)
{
    struct http_guest *g = (struct http_guest *)source;
    assert(g->magic == GUEST_MAGIC);
    if (g->ops != NULL)
        g->ops->event(g->ctx, events);
}

static bool control(struct http_guest *g, int what, uint32_t events)
{
    struct epoll_event event = {.events = events | EPOLLET, .data.ptr = &g->source};
    return epoll_ctl(g->reactor->epoll_fd, what, g->fd, &event) == 0;
}

struct http_guest *http_guest_new(struct http_request *req, int fd, uint32_t events,
                                  const struct http_guest_ops *ops, void *ctx)
{
    struct http_guest *g = xcalloc(1, sizeof *g);
    *g = (struct http_guest){.source = {guest_event},
                             .magic = GUEST_MAGIC,
                             .reactor = reactor_of(req),
                             .fd = fd,
                             .ops = ops,
                             .ctx = ctx};
    if (!control(g, EPOLL_CTL_ADD, events)) {
        free(g);
        return NULL;
    }
    if (g->reactor->guests == NULL)
        g->reactor->ticked_ms = g->reactor->now_ms;
    enlist(g, &g->reactor->guests);
    return g;
}

void http_guest_pass(struct http_guest *g, const struct http_guest_ops *ops, void *ctx)
{
    assert(g->magic == GUEST_MAGIC && g->ops != NULL);
    g->ops = ops;
    g->ctx = ctx;
}

bool http_guest_want(struct http_guest *g, uint32_t events)
{
    return control(g, EPOLL_CTL_MOD, events);
}

void http_guest_free(struct http_guest *g)
{
    if (g == NULL)
        return;
    assert(g->magic == GUEST_MAGIC && g->ops != NULL);
    bool left = control(g, EPOLL_CTL_DEL, 0);
    assert(left);
    (void)left;
    g->ops = NULL;
    if (g->reactor->next_guest == g)
        g->reactor->next_guest = g->next;
    delist(g);
    enlist(g, &g->reactor->left);
}

/* --- the reactor's ---------------------------------------------------------------------------- */

/* Any may leave in a tick, also the next. */
void guests_tick(struct reactor *r)
{
    if (r->guests == NULL || r->now_ms - r->ticked_ms < HTTP_GUEST_TICK_MS)
        return;
    r->ticked_ms = r->now_ms;
    r->next_guest = r->guests;
    for (struct http_guest *g; (g = r->next_guest) != NULL;) {
        r->next_guest = g->next;
        g->ops->tick(g->ctx, r->read_ms);
    }
}

void guests_end(struct reactor *r)
{
    while (r->guests != NULL)
        r->guests->ops->end(r->guests->ctx);
    guests_bury(r);
}

void guests_bury(struct reactor *r)
{
    while (r->left != NULL) {
        struct http_guest *g = r->left;
        delist(g);
        g->magic = 0;
        free(g);
    }
}
