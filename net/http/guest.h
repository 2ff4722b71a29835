/* A socket of a handler that the HTTP thread of its request watches beside the connections.  So a
 * handler talks to another node without a second thread, and replies without a hand-over.
 *
 *     http_may_host(req)   is there such a thread?
 *     http_here()          gets into it
 *     http_guest_new()     from here on event() and tick() come
 *     http_guest_pass()    … to somebody else: a guest may outlive the request
 *     http_guest_free()    … and no more
 *
 * All functions but the first two, and all callbacks, are the thread's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "net/http/conn_types.h"

struct http_guest;

struct http_guest_ops {
    /* EPOLLIN, EPOLLOUT and so on of epoll(7): an edge. */
    void (*event)(void *ctx, uint32_t events);
    /* About every HTTP_GUEST_TICK_MS.  What had come by `now_ms` has had its event. */
    void (*tick)(void *ctx, uint64_t now_ms);
    /* The thread has ended, with all its requests: frees the guest.  NULL: it has not been left. */
    void (*end)(void *ctx);
};
enum { HTTP_GUEST_TICK_MS = 250 };

/* False: a connection of libmicrohttpd. */
bool http_may_host(const struct http_request *req);
/* Runs `job` in the request's thread: at once where it is this one, else soon.  Of a request whose
 * reply is owed; any thread. */
void http_here(struct http_request *req, struct reactor_job *job);
/* Watches for `events`; the socket stays the caller's, who closes it after http_guest_free().
 * NULL, and errno: it cannot be watched. */
struct http_guest *http_guest_new(struct http_request *req, int fd, uint32_t events,
                                  const struct http_guest_ops *ops, void *ctx);
/* The callbacks are those of another owner from now on. */
void http_guest_pass(struct http_guest *g, const struct http_guest_ops *ops, void *ctx);
/* Which thread watches it, and which one is a request's. */
const struct reactor *http_guest_thread(const struct http_guest *g);
const struct reactor *http_request_thread(const struct http_request *req);
/* Other events from now on.  False, and errno: that fails. */
bool http_guest_want(struct http_guest *g, uint32_t events);
/* Also from within a callback; when the thread has ended, from any. */
void http_guest_free(struct http_guest *g); /* NULL is fine */

/* --- the reactor's ---------------------------------------------------------------------------- */
void guests_tick(struct reactor *r);
/* The reactor ends. */
void guests_end(struct reactor *r);
/* Frees the memory of those that have left: no event of this round is before it any more. */
void guests_bury(struct reactor *r);
