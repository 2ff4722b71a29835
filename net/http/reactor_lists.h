/* Which connections of a reactor run next, and which have been still for longest.
 *
 *   fresh    has no request yet; in the order of arrival
 *   shaking  is in the handshake of TLS; waiting: would be, but others have all slots for that
 *   live     has begun one; the one that has been still for longest first
 *   ready    has more to do than one turn
 *   resting  has used up the rate of its caller (conn_pace.h)
 *   woken    by another thread; adopted: handed over by the accepting one
 *
 * reactor_post(), reactor_wake() and reactor_run(): any thread; the others: the reactor's. */
#pragma once

#include "net/http/conn_types.h"

/* The calling thread is the reactor's from now on. */
void reactor_enter(const struct reactor *r);
/* Is this the reactor's thread? */
bool reactor_is_here(const struct reactor *r);

/* Adds to `woken` or `adopted`, and wakes the reactor. */
void reactor_post(struct reactor *r, struct conn_list *list, struct conn *c);
/* The reactor looks at what it was given; with its lock held.  Its own thread looks before it waits
 * again. */
void reactor_signal(struct reactor *r);
void reactor_wake(struct reactor *r, struct conn *c);
/* Runs the job soon in the reactor's thread; of one that has ended, in reactor_free()'s.  Any
 * thread. */
void reactor_run(struct reactor *r, struct reactor_job *job);

void reactor_admitted(struct reactor *r, struct conn *c); /* it is fresh */
/* Is a slot free for the handshake of a fresh one?  Else it waits, and runs again when there is. */
bool reactor_takes_handshake(struct reactor *r, struct conn *c);
void reactor_shaken(struct reactor *r, struct conn *c); /* its handshake is over: it is fresh */
void reactor_spoke(struct reactor *r, struct conn *c);  /* it is no longer fresh */
void reactor_touch(struct reactor *r, struct conn *c);  /* it has made progress */
void reactor_again(struct reactor *r, struct conn *c);  /* after all others that are ready */
struct conn *
reactor_next_ready(struct reactor *r); /* off the list; NULL: none of before this round */
void reactor_rest(struct reactor *r, struct conn *c);   /* for REACTOR_REST_MS from now on … */
void reactor_rested(struct reactor *r, struct conn *c); /* … or no more */
/* Whose rest is over, off the list; or NULL. */
struct conn *reactor_next_rested(struct reactor *r);
void reactor_forget(struct reactor *r, struct conn *c);
/* At this moment: of a fresh one; and of one in its handshake, SERVER_CROWDED_MS at most while all
 * slots are taken. */
uint64_t reactor_head_timeout_ms(const struct reactor *r);
uint64_t reactor_handshake_timeout_ms(const struct reactor *r);
