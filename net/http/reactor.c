/* The thread waits for sockets, with edges (EPOLLET): a connection is added once with all events
 * and never changed, and remembers itself what it knows of its socket.  EPOLLRDHUP makes that safe
 * for short reads: they mean "empty" unless the peer's end has been seen already.
 *
 * Three lists bring a connection to run: events; `ready`, where those go that have used up their
 * turn, until the next round, so that nobody starves; and `woken`, filled by other threads, who
 * write to an eventfd when the thread does not know yet.  A connection that is asleep runs only by
 * the last, one that dozes by whatever comes first.
 *
 * Guests (guest.h) are sockets of handlers.  What they wake runs in the same round, without the
 * eventfd.
 *
 * A connection that rests (conn_pace.h) is in a list of its own, and runs when its rest is over.
 *
 * Timeouts count up to `read_ms`, the beginning of the last looks at the sockets that found all
 * their events.  So a thread that was not run for a while, or a process that was stopped, first
 * reads what its clients sent meanwhile. */
#include "net/http/reactor.h"

#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "io/thread.h"
#include "net/http/conn.h"
#include "net/http/guest.h"
#include "net/http/reactor_lists.h"
#include "net/http/server_state.h"

enum { REACTOR_TIMEOUT_MAX_MS = 24 * 3600 * 1000 };

/* --- messages --------------------------------------------------------------------------------- */

void reactor_adopt(struct reactor *r, int fd, const struct sockaddr *peer, socklen_t peer_len)
{
    atomic_fetch_add_explicit(&r->load, 1, memory_order_relaxed);
    server_connection_silent(r->server);
    reactor_post(r, &r->adopted, conn_new(r, fd, peer, peer_len));
}

unsigned reactor_load(const struct reactor *r)
{
    return atomic_load_explicit(&r->load, memory_order_relaxed);
}

static void reactor_event(struct reactor_source *source, uint32_t events)
{
    struct conn *c = (struct conn *)source;
    if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)
        c->readable = true;
    if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)
        c->peer_done = true;
    if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0)
        c->writable = true;
    if (!c->is_ready && conn_rouse(c))
        conn_run(c);
}

static void reactor_admit(struct reactor *r, struct conn *c)
{
    reactor_admitted(r, c);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                .data.ptr = &c->source};
    c->source.event = reactor_event;
    if (epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, c->fd, &event) != 0)
        conn_free(c);
}

static void reactor_take_messages(struct reactor *r)
{
    pthread_mutex_lock(&r->lock);
    struct conn *adopted = r->adopted.first;
    struct conn *woken = r->woken.first;
    struct reactor_job *jobs = r->jobs;
    r->adopted = r->woken = (struct conn_list){0};
    r->jobs = NULL;
    r->signalled = r->has_messages = false;
    pthread_mutex_unlock(&r->lock);
    for (struct conn *c = adopted, *next; c != NULL; c = next) {
        next = c->next_message;
        reactor_admit(r, c);
    }
    for (struct conn *c = woken, *next; c != NULL; c = next) {
        next = c->next_message;
        c->asleep = c->dozing = false;
        reactor_touch(r, c);
        conn_run(c);
    }
    for (struct reactor_job *next; jobs != NULL; jobs = next) {
        next = jobs->next;
        jobs->run(r, jobs);
    }
}

/* --- connections ------------------------------------------------------------------------------ */

static void reactor_run_ready(struct reactor *r)
{
    for (struct conn *c; (c = reactor_next_ready(r)) != NULL;) {
        if (conn_rouse(c))
            conn_run(c);
    }
}

static void reactor_run_rested(struct reactor *r)
{
    for (struct conn *c; (c = reactor_next_rested(r)) != NULL;) {
        if (!c->is_ready && conn_rouse(c))
            conn_run(c);
    }
}

/* One that was touched after that look is not. */
static bool is_late(const struct reactor *r, const struct conn *c, uint64_t timeout_ms)
{
    return r->read_ms >= c->moved_ms && r->read_ms - c->moved_ms >= timeout_ms;
}

/* Those that are asleep wait for one of our own threads, not for the peer. */
static void reactor_check_timeouts(struct reactor *r)
{
    for (struct conn *c; (c = r->shaking.first) != NULL;) {
        if (!is_late(r, c, reactor_handshake_timeout_ms(r)))
            break;
        conn_timeout(c); /* is gone */
    }
    for (struct conn *c; (c = r->fresh.first) != NULL;) {
        if (!is_late(r, c, reactor_head_timeout_ms(r)))
            break;
        conn_timeout(c); /* speaks, or is gone */
    }
    for (struct conn *c; (c = r->live.first) != NULL;) {
        if (!is_late(r, c, r->timeout_ms))
            return;
        if (conn_rouse(c))
            conn_timeout(c);
        else
            reactor_touch(r, c);
    }
}

static uint64_t list_end(const struct conn_list *list, uint64_t timeout_ms)
{
    return list->first != NULL ? list->first->moved_ms + timeout_ms : UINT64_MAX;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static int reactor_wait_ms(const struct reactor *r)
{
    if (r->ready.first != NULL || r->has_messages)
        return 0;
    uint64_t end = list_end(&r->live, r->timeout_ms);
    end = earlier(end, list_end(&r->fresh, reactor_head_timeout_ms(r)));
    end = earlier(end, list_end(&r->shaking, reactor_handshake_timeout_ms(r)));
    if (r->resting.first != NULL)
        end = earlier(end, r->resting.first->rests_since + REACTOR_REST_MS);
    if (r->guests != NULL)
        end = earlier(end, r->ticked_ms + HTTP_GUEST_TICK_MS);
    if (end == UINT64_MAX)
        return -1;
    bool may_crowd = r->fresh.first != NULL || r->shaking.first != NULL;
    if (may_crowd && end > r->now_ms + SERVER_CROWDED_MS)
        end = r->now_ms + SERVER_CROWDED_MS; /* others may have become many meanwhile */
    return end > r->now_ms ? (int)(end - r->now_ms) : 0;
}

static void reactor_clear_wake(struct reactor *r)
{
    uint64_t count;
    ssize_t n = read(r->wake_fd, &count, sizeof count);
    (void)n; /* it was readable */
}

static bool reactor_stopping(struct reactor *r)
{
    pthread_mutex_lock(&r->lock);
    bool stopping = r->stopping;
    pthread_mutex_unlock(&r->lock);
    return stopping;
}

/* The system gives the events that have waited for longest, one for each socket: a full look may
 * have left some, a series of looks that has brought more than there are sockets has not. */
static void reactor_note_look(struct reactor *r, int n)
{
    assert(n >= 0 || errno == EINTR); /* a stopped process that goes on */
    if (n < 0)
        return;
    r->looked += (unsigned)n;
    if (n == REACTOR_EVENTS && r->looked <= reactor_load(r))
        return;
    r->read_ms = r->look_ms;
    r->looked = 0;
}

static bool reactor_turn(struct reactor *r)
{
    struct epoll_event events[REACTOR_EVENTS];
    int wait_ms = reactor_wait_ms(r);
    r->look_ms = r->looked == 0 ? clock_ms() : r->look_ms;
    int n = epoll_wait(r->epoll_fd, events, REACTOR_EVENTS, wait_ms);
    reactor_note_look(r, n);
    r->now_ms = clock_ms();
    r->round++;
    bool messages = false;
    for (int i = 0; i < n; i++) {
        struct reactor_source *source = events[i].data.ptr;
        if (source == NULL)
            messages = true;
        else
            source->event(source, events[i].events);
    }
    if (messages)
        reactor_clear_wake(r);
    if (messages || r->has_messages)
        reactor_take_messages(r);
    reactor_run_ready(r);
    reactor_run_rested(r);
    reactor_check_timeouts(r);
    guests_tick(r);
    guests_bury(r);
    return !messages || !reactor_stopping(r);
}

static void *reactor_main(void *arg)
{
    struct reactor *r = arg;
    reactor_enter(r);
    r->now_ms = clock_ms();
    while (reactor_turn(r))
        ;
    reactor_take_messages(r);
    return NULL;
}

/* --- the reactor ------------------------------------------------------------------------------ */

static int reactor_open(struct reactor *r, struct error *err)
{
    r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    r->wake_fd = eventfd(0, EFD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    if (r->epoll_fd < 0 || r->wake_fd < 0 ||
        epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, r->wake_fd, &event) != 0)
        return error_errno(err, errno, "create an epoll set");
    return 0;
}

static void reactor_done(struct reactor *r)
{
    guests_end(r);
    if (r->epoll_fd >= 0)
        close(r->epoll_fd);
    if (r->wake_fd >= 0)
        close(r->wake_fd);
    pthread_mutex_destroy(&r->lock);
    buf_done(&r->text);
    buf_done(&r->plain);
    free(r->input);
    free(r);
}

static uint64_t no_longer_than(uint64_t ms, uint64_t most_ms)
{
    return ms > 0 && ms < most_ms ? ms : most_ms;
}

int reactor_new(struct http_server *server, const char *thread_name,
                const struct reactor_limits *limits, struct reactor **out, struct error *err)
{
    struct reactor *r = xcalloc(1, sizeof *r);
    r->server = server;
    r->timeout_ms = no_longer_than(limits->timeout_ms, REACTOR_TIMEOUT_MAX_MS);
    r->head_timeout_ms = no_longer_than(limits->head_timeout_ms, r->timeout_ms);
    r->handshake_timeout_ms = no_longer_than(limits->handshake_timeout_ms, r->timeout_ms);
    r->handshakes_max = limits->handshakes_max;
    r->input = xmalloc(REACTOR_INPUT_BYTES);
    pthread_mutex_init(&r->lock, NULL);
    int rc = reactor_open(r, err);
    if (rc == 0)
        rc = thread_start(thread_name, reactor_main, r, &r->thread, err);
    if (rc != 0) {
        reactor_done(r);
        return rc;
    }
    *out = r;
    return 0;
}

void reactor_stop(struct reactor *r)
{
    pthread_mutex_lock(&r->lock);
    r->stopping = true;
    reactor_signal(r);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
}

static bool reactor_has_messages(struct reactor *r)
{
    pthread_mutex_lock(&r->lock);
    bool any = r->adopted.first != NULL || r->woken.first != NULL || r->jobs != NULL;
    pthread_mutex_unlock(&r->lock);
    return any;
}

bool reactor_finish(struct reactor *r)
{
    bool any = reactor_has_messages(r);
    if (any)
        reactor_take_messages(r);
    return any;
}

void reactor_free(struct reactor *r)
{
    while (r->fresh.first != NULL)
        conn_free(r->fresh.first);
    while (r->shaking.first != NULL)
        conn_free(r->shaking.first);
    while (r->live.first != NULL)
        conn_free(r->live.first);
    reactor_done(r);
}
