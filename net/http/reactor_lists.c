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

static struct conn_link *resting_link(struct conn *c)
{
    return &c->resting;
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

/* --- the thread ------------------------------------------------------------------------------- */

static _Thread_local const struct reactor *here;

void reactor_enter(const struct reactor *r)
{
    here = r;
}

bool reactor_is_here(const struct reactor *r)
{
    return here == r;
}

/* --- messages --------------------------------------------------------------------------------- */

/* With the lock held. */
void reactor_signal(struct reactor *r)
{
    if (reactor_is_here(r)) {
        r->has_messages = true;
        return;
    }
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

void reactor_run(struct reactor *r, struct reactor_job *job)
{
    pthread_mutex_lock(&r->lock);
    job->next = r->jobs;
    r->jobs = job;
    reactor_signal(r);
    pthread_mutex_unlock(&r->lock);
}

/* --- the order ------------------------------------------------------------------------------ */

static void enter(struct reactor *r, struct conn *c, struct conn_list *list)
{
    c->list = list;
    c->moved_ms = r->now_ms;
    list_append(list, c, live_link);
}

/* The connection that has waited for longest gets the slot of a handshake that is over. */
static void slot_is_free(struct reactor *r)
{
    struct conn *next = r->waiting.first;
    r->handshakes--;
    if (next == NULL)
        return;
    list_remove(&r->waiting, next, ready_link);
    next->is_waiting = false;
    reactor_again(r, next);
}

static void leave(struct reactor *r, struct conn *c)
{
    list_remove(c->list, c, live_link);
    if (c->list == &r->shaking)
        slot_is_free(r);
}

static void stop_waiting(struct reactor *r, struct conn *c)
{
    if (c->is_ready)
        list_remove(&r->ready, c, ready_link);
    if (c->is_waiting)
        list_remove(&r->waiting, c, ready_link);
    c->is_ready = c->is_waiting = false;
}

void reactor_admitted(struct reactor *r, struct conn *c)
{
    enter(r, c, &r->fresh);
}

void reactor_again(struct reactor *r, struct conn *c)
{
    if (c->is_ready)
        return;
    c->is_ready = true;
    c->ready_since = r->round;
    list_append(&r->ready, c, ready_link);
}

bool reactor_takes_handshake(struct reactor *r, struct conn *c)
{
    bool takes = r->handshakes < r->handshakes_max;
    if (takes) {
        stop_waiting(r, c);
        leave(r, c);
        enter(r, c, &r->shaking);
        r->handshakes++;
    } else if (!c->is_waiting) {
        c->is_waiting = true;
        list_append(&r->waiting, c, ready_link);
    }
    return takes;
}

void reactor_shaken(struct reactor *r, struct conn *c)
{
    leave(r, c);
    enter(r, c, &r->fresh);
}

void reactor_spoke(struct reactor *r, struct conn *c)
{
    c->spoke = true;
    leave(r, c);
    enter(r, c, &r->live);
}

/* The time of a fresh one counts from its beginning. */
void reactor_touch(struct reactor *r, struct conn *c)
{
    if (!c->spoke)
        return;
    c->moved_ms = r->now_ms;
    if (r->live.last == c)
        return;
    leave(r, c);
    enter(r, c, &r->live);
}

/* It is the server that makes the peer wait: the idle time begins anew. */
void reactor_rest(struct reactor *r, struct conn *c)
{
    reactor_touch(r, c);
    c->is_resting = true;
    c->rests_since = r->now_ms;
    list_append(&r->resting, c, resting_link);
}

void reactor_rested(struct reactor *r, struct conn *c)
{
    if (c->is_resting)
        list_remove(&r->resting, c, resting_link);
    c->is_resting = false;
}

struct conn *reactor_next_rested(struct reactor *r)
{
    struct conn *c = r->resting.first;
    if (c == NULL || r->now_ms < c->rests_since + REACTOR_REST_MS)
        return NULL;
    reactor_rested(r, c);
    return c;
}

void reactor_forget(struct reactor *r, struct conn *c)
{
    reactor_rested(r, c);
    stop_waiting(r, c);
    leave(r, c);
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

uint64_t reactor_handshake_timeout_ms(const struct reactor *r)
{
    bool is_full = r->handshakes >= r->handshakes_max;
    return is_full && r->handshake_timeout_ms > SERVER_CROWDED_MS ? SERVER_CROWDED_MS
                                                                  : r->handshake_timeout_ms;
}
