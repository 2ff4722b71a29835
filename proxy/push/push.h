/* Brings each new state to every node, and knows who has it.
 *
 * At most one message to a node is under way; what changes meanwhile goes with the next one, which
 * carries the newest state.  A failure is repeated after a time that doubles from 100 ms to 5 s; a
 * node that joins, or begins anew, is asked for at once.  Nodes also find out by their keepalives,
 * so that nothing depends on a push: it makes changes known in milliseconds.
 *
 * A message is the difference from a state that the node holds (cluster/documents/push_body.h), if
 * it is one of the last PUSH_HISTORY, or the whole state:
 *
 *   a run of a node that is older than this pusher   from the state that the last primary has left
 *   one that joins, or begins anew                   the whole
 *   one that has replied                             from what it said that it holds
 *   one that holds another state than that           from that one, at once; then the whole
 *   one that the difference does not fit             the whole, at once
 *   one that refused                                 the whole
 *
 * What is repeated since no reply came is what it was.
 *
 * N nodes: a new state costs O(N), a reply O(1), and O(N) while somebody waits in
 * pusher_settle().  A state is kept while a message may begin with it.
 *
 * Pure: the world comes in through the env, the time with pusher_tick().  All in one thread. */
#pragma once

#include "cluster/documents/push_body.h"
#include "cluster/documents/state.h"
#include "proxy/metastore/settle_scope.h"

/* A rack that is lost, or a join storm, commits a hundred states while a message is under way. */
enum { PUSH_HISTORY = 128 };

struct pusher_env {
    void *ctx;
    const struct cluster_state *(*state)(void *ctx); /* a reference, for the pusher to drop */
    /* Sends `s`, as the difference from `from` unless that is NULL.  done() now or later, in the
     * same thread: the node's reply, err NULL; or why there is none, which alone may come now. */
    void (*send)(void *ctx, const struct node *n, const struct cluster_state *from,
                 const struct cluster_state *s,
                 void (*done)(void *arg, const struct push_reply *r, const struct error *err),
                 void *arg);
};

struct pusher;

/* `before`: the state before the first one of this primary; NULL: nothing is known of it. */
struct pusher *pusher_new(const struct pusher_env *env, const char *self,
                          const struct cluster_state *before);
/* Sends no more; what waits to be settled is told so. */
void pusher_close(struct pusher *ps);
/* After pusher_close(), and no done() may come after this. */
void pusher_free(struct pusher *ps);
size_t pusher_kept(const struct pusher *ps); /* so many states are kept; for tests */
/* The state has changed. */
void pusher_publish(struct pusher *ps, uint64_t now_ms);
/* At least every 50 ms. */
void pusher_tick(struct pusher *ps, uint64_t now_ms);
/* fn(arg) once every active node of the scope has this state or a later one, but for those that did
 * not take the last message (most are dead, and not given up yet); or at deadline_ms. */
void pusher_settle(struct pusher *ps, const struct cluster_state *s, enum settle_scope scope,
                   uint64_t deadline_ms, void (*fn)(void *arg), void *arg);
