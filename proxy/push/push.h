/* Brings each new state to every node, and knows who has it.
 *
 * At most one message to a node is under way; what changes meanwhile goes with the next one, which
 * carries the newest state.  A failure is repeated after a time that doubles from 100 ms to 5 s; a
 * node that joins, or begins anew, is asked for at once.  Nodes also find out by their keepalives,
 * so that nothing depends on a push: it makes changes known in milliseconds.
 *
 * The first message to a run of a node is the whole state.  The reply says what the node holds, and
 * whether it reads differences (cluster/documents/push_body.h); from then on a message is the
 * difference from that state, if it is one of the last PUSH_HISTORY.  A node that holds another
 * state than the difference begins with gets the whole at once; so does a node for which two
 * messages in a row have failed.
 *
 * N nodes: a new state costs O(N), a reply O(1), and O(N) while somebody waits in
 * pusher_settle().
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

struct pusher *pusher_new(const struct pusher_env *env, const char *self);
/* Sends no more; what waits to be settled is told so. */
void pusher_close(struct pusher *ps);
/* After pusher_close(), and no done() may come after this. */
void pusher_free(struct pusher *ps);
/* The state has changed. */
void pusher_publish(struct pusher *ps, uint64_t now_ms);
/* At least every 50 ms. */
void pusher_tick(struct pusher *ps, uint64_t now_ms);
/* fn(arg) once every active node of the scope has this state or a later one, but for those that did
 * not take the last message (most are dead, and not given up yet); or at deadline_ms. */
void pusher_settle(struct pusher *ps, const struct cluster_state *s, enum settle_scope scope,
                   uint64_t deadline_ms, void (*fn)(void *arg), void *arg);
