/* Calls of the kernel, in memory that outlives the process: which of them has
 * been committed?
 *
 * A process that takes over gets the calls again that were not answered.  One
 * that was committed must not be made twice: a second unlink would remove
 * another file of that name.
 *
 *     a call begins      a slot has its number
 *     its commit is sent the slot has lane and number of the commit
 *     … and was made     the slot says so
 *     it was answered    the slot is free
 *
 * At a takeover the numbers of the lanes tell what became of commits that were
 * on their way.  A slot changes by single stores, so a kill at any moment
 * leaves one of these states. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/cleanup.h"

enum { CALLS_MOST = 512, CALLS_AGE_MOST = 8 };

enum call_state { CALL_BEGUN, CALL_SENT, CALL_MADE };

struct call {
    _Atomic uint64_t id; /* 0: free */
    _Atomic uint32_t state;
    uint32_t lane;
    int64_t number;
    uint32_t age; /* takeovers since it was made */
};

struct volume_memory {
    _Atomic uint64_t session; /* 0: there is none to go on with */
    struct call calls[CALLS_MOST];
};

/* NULL: there is no memory. */
struct volume_memory *volume_memory_new(void);
void volume_memory_free(struct volume_memory *m); /* NULL is fine */
DEFINE_CLEANUP(struct volume_memory, volume_memory_free);

/* The slot of the call, taken if it has none.  NULL: all are taken. */
struct call *calls_take(struct volume_memory *m, uint64_t id);
void calls_give(struct call *c); /* NULL is fine */
bool calls_is_made(const struct call *c);

/* Of the first commit of a call; NULL is fine.  `made` before the lane's next
 * commit. */
void calls_sent(struct call *c, uint32_t lane, int64_t number);
void calls_ended(struct call *c, bool made);

/* Of this thread; NULL: none. */
void calls_set_current(struct call *c);
struct call *calls_current(void);

/* At a takeover: the lane has this number now. */
void calls_judge(struct volume_memory *m, uint32_t lane, int64_t number);
/* No commit of the process before is on its way any more. */
void calls_settle(struct volume_memory *m);
