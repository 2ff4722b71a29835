/* This target's membership: it registers with the primary proxy, keeps alive, and fetches the
 * cluster's state when it hears that it is behind (state_fetch.h).  Runs in the control loop; what
 * takes longer (parsing and saving a state) runs in the worker pool. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "common/error.h"

struct member;
struct target;

/* What rooms above this one take part in. */
struct member_hooks {
    /* The primary's promise: until `sent_ms` (of the boot clock) and `lease_ms` more nobody acts in
     * this target's place.  0, 0: there is none. */
    void (*lease)(struct target *t, int64_t sent_ms, uint64_t lease_ms);
    /* Adds to what a keepalive says of this target. */
    void (*capacity)(struct target *t, json_t *capacity);
};

/* Before the servers, whose first requests may ask for a newer state. */
int member_new(struct target *t, const struct member_hooks *hooks, struct member **out,
               struct error *err);
void member_begin(struct member *m); /* registers, when the addresses are known */
/* Why the primary does not let this run in, where it has said so last; false: it has not.  Any
 * thread. */
bool member_is_refused(struct member *m, struct error *why);
/* It is not kept alive any more; states are still fetched. */
void member_quiet(struct member *m);
/* No more calls are begun; who waits for a state is told to go on without. */
void member_close(struct member *m);
/* After member_close() and the end of t->control_client and t->workers. */
void member_free(struct member *m);

/* As state_fetch_wait() and state_fetch_taken() (state_fetch.h).  Any thread. */
void member_refresh(struct member *m, const char *wanted, void (*fn)(void *arg), void *arg);
void member_state_taken(struct member *m);
