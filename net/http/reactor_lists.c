#include "net/http/reactor_lists.h"

#include <assert.h>
#include <unistd.h>

#include "net/http/server_state.h"

/* --- lists ------------------------------------------------------------------------------------ */

static struct conn_link *live_link(struct conn *c)
{
    return &c->live;
}

static struct conn_link *ready_link(struct conn *c)
{
    return &c->ready;
}

typedef struct conn_link *link_fn(struct conn *c);

static void list_append(struct conn_list *list, struct conn *c, link_fn *link)
{
    *link(c) = (struct conn_link){.previous = list->last};
    if (list->last != NULL)
        link(list->last)->next = c;
    else
        list->first = c;
    list->last = c;
}

static void list_remove(struct conn_list *list, struct conn *c, link_fn *link)
{
    struct conn_link *l = link(c);
    if (l->previous != NULL)
        link(l->previous)->next = l->next;
    else
        list->first = l->next;
    if (l->next != NULL)
        link(l->next)->previous = l->previous;
    else
        list->last = l->previous;
}

/* --- messages --------------------------------------------------------------------------------- */

/* With the lock held. */
void reactor_signal(struct reactor *r)
{
    if (r->signalled)
        return;
    r->signalled = true;
    uint64_t one = 1;
    ssize_t n = write(r->wake_fd, &one, sizeof one);
    assert(n == sizeof one);
    (void)n;
}

void reactor_post(struct reactor *r, struct conn_list *list, struct conn *c)
{
    c->next_message = NULL;
    pthread_mutex_lock(&r->lock);
    if (list->first != NULL)
        list->last->next_message = c;
    else
        list->first = c;
    list->last = c;
    reactor_signal(r);
    pthread_mutex_unlock(&r->lock);
}

void reactor_wake(struct reactor *r, struct conn *c)
{
    reactor_post(r, &r->woken, c);
}

/* --- the order ------------------------------------------------------------------------------ */

void reactor_admitted(struct reactor *r, struct conn *c)
{
    c->moved_ms = r->now_ms;
    list_append(&r->fresh, c, live_link);
}

void reactor_again(struct reactor *r, struct conn *c)
{
    if (c->is_ready)
        return;
    c->is_ready = true;
    c->ready_since = r->round;
    list_append(&r->ready, c, ready_link);
}

void reactor_spoke(struct reactor *r, struct conn *c)
{
    c->spoke = true;
    c->moved_ms = r->now_ms;
    list_remove(&r->fresh, c, live_link);
    list_append(&r->live, c, live_link);
}

/* The time of a fresh one counts from its beginning. */
void reactor_touch(struct reactor *r, struct conn *c)
{
    if (!c->spoke)
        return;
    c->moved_ms = r->now_ms;
    if (r->live.last == c)
        return;
    list_remove(&r->live, c, live_link);
    list_append(&r->live, c, live_link);
}

void reactor_forget(struct reactor *r, struct conn *c)
{
    if (c->is_ready)
        list_remove(&r->ready, c, ready_link);
    list_remove(c->spoke ? &r->live : &r->fresh, c, live_link);
    atomic_fetch_sub_explicit(&r->load, 1, memory_order_relaxed);
    server_connection_closed(r->server, (const struct sockaddr *)&c->peer);
}

/* Not those that have had their turn in this round: who has had none goes first. */
struct conn *reactor_next_ready(struct reactor *r)
{
    struct conn *c = r->ready.first;
    if (c == NULL || c->ready_since == r->round)
        return NULL;
    list_remove(&r->ready, c, ready_link);
    c->is_ready = false;
    return c;
}

uint64_t reactor_head_timeout_ms(const struct reactor *r)
{
    return server_head_timeout_ms(r->server, r->head_timeout_ms);
}
