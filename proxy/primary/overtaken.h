/* Calls that were passed on to a primary which another one has followed since: whoever waits for
 * them may wait in vain, for it was cut off or frozen.  They are given a moment more, in which one
 * that has merely resigned answers, and are then ended.
 *
 *   overtaken_call           it goes to wait.primary, found under a state of wait.term
 *   overtaken_state_changed  a later term has another primary: http_call_cancel(), grace_ms later
 *   overtaken_remove         the call has ended, by that or otherwise
 *
 * A state of the same term tells nothing: the election, by which a primary is found, is ahead of
 * it. */
#pragma once

#include "cluster/documents/state.h"
#include "cluster/documents/state_holder.h"
#include "io/loop.h"
#include "net/client/client.h"

struct overtaken;

/* In the caller's memory; the id, too. */
struct overtaken_wait {
    struct overtaken_wait *prev, *next; /* both are NULL unless its call is under way */
    uint64_t call;
    uint64_t term;
    const char *primary;
};

/* In the loop's thread, all but overtaken_call() and overtaken_remove(), which any may say.  The
 * client may have a loop of its own. */
struct overtaken *overtaken_new(struct loop *loop, struct http_client *client,
                                struct state_holder *state, uint64_t grace_ms);
void overtaken_free(struct overtaken *o); /* when nobody waits */
void overtaken_state_changed(struct overtaken *o);

/* Starts the call; done() must say overtaken_remove(). */
void overtaken_call(struct overtaken *o, struct overtaken_wait *w, const struct http_call *call,
                    void (*done)(void *arg, struct http_result *result), void *arg);
void overtaken_remove(struct overtaken *o, struct overtaken_wait *w);
