/* Fetches the cluster's state from others, for whoever waits for a newer one.
 *
 * The primary is asked first; where it does not answer, or has not what somebody waits for, the
 * other proxies and targets: a primary may have died when one of them alone had got its last
 * change.  Who waits goes on as soon as the state is in force, wherever that came from (a push may
 * be quicker), or when nobody has it: a wish for a state that does not exist holds up nobody else.
 *
 * In the control loop's thread, but for state_fetch_wait() and state_fetch_taken(). */
#pragma once

#include <stdbool.h>

struct state_fetch;
struct target;

struct state_fetch *state_fetch_new(struct target *t);
void state_fetch_free(struct state_fetch *f); /* after state_fetch_close() and the loop's end */

/* Calls fn(arg) in a worker (or, where the pool is full, in the control loop's thread) after the
 * state that is wanted, or a later one, has been put in force, or nobody has it.  `wanted` is a
 * sender's dfcv ("1.17"); NULL: any that is newer than the present one.  Any thread. */
void state_fetch_wait(struct state_fetch *f, const char *wanted, void (*fn)(void *arg), void *arg);
/* A state has been put in force.  Any thread. */
void state_fetch_taken(struct state_fetch *f);

/* Somebody is known to have a newer one: asks, if nobody is being asked. */
void state_fetch_begin(struct state_fetch *f);
/* An attempt to be let in has ended.  Who came before this target had its first state: it has one
 * now, or will not have it soon. */
void state_fetch_let_in(struct state_fetch *f);
/* Nobody is asked any more; who waits goes on. */
void state_fetch_close(struct state_fetch *f);
