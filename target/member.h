/* This target's membership: it registers with the primary proxy, keeps alive, and fetches the
 * cluster's state when it hears that it is behind.  Runs in the control loop; what takes longer
 * (parsing and saving a state) runs in the worker pool. */
#pragma once

#include "common/error.h"

struct member;
struct target;

/* Before the servers, whose first requests may ask for a newer state. */
int member_new(struct target *t, struct member **out, struct error *err);
void member_begin(struct member *m); /* registers, when the addresses are known */
/* No more calls are begun; who waits for a state is told to go on without. */
void member_close(struct member *m);
/* After member_close() and the end of t->control_client and t->workers. */
void member_free(struct member *m);

/* Calls fn(arg) in a worker (or, where the pool is full, in the control loop's thread) after the
 * state that is wanted, or a later one, has been put in force, or nobody has it.  `wanted` is a
 * sender's dfcv ("1.17"); NULL: any that is newer than the present one.  Any thread. */
void member_refresh(struct member *m, const char *wanted, void (*fn)(void *arg), void *arg);
