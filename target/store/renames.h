/* Renames of one name go one after the other, and no deletion of the name comes between.
 *
 *   rename a   rename a   DELETE a      in the order in which they came, one at a time
 *   rename b                            beside them
 *
 * A rename copies first and deletes the old name last (object_rename.c).  Without turns two renames
 * of one name could both copy, and both succeed; so could a DELETE in the middle.
 *
 * A DELETE, or a deletion of a job, takes a turn only where a rename has one, or waits for one:
 * renames_busy().  It asks that under the lock under which it commits.  A rename looks at the
 * object when every deletion that has asked before is through.
 *
 * What was renamed is remembered for a while, by the request's id: a client that lost the answer
 * and sends the same request again gets the same answer.  Any thread may call. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"

struct pool;
struct renames;

/* No parameters: both bound memory, and larger ones would help nobody.  A rename that finds 4096
 * turns before it (503) should come later.  A client repeats a lost answer within seconds, in which
 * a target hardly makes 1024 renames. */
enum {
    RENAMES_WAITING = 4096, /* turns that wait, of all names together */
    RENAMES_KEPT = 1024,    /* the last ones, remembered */
};

struct renames *renames_new(struct pool *pool);
void renames_free(struct renames *r); /* nobody waits or runs; NULL is fine */
DEFINE_CLEANUP(struct renames, renames_free);

/* fn() runs in a thread of the pool, and may wait.  E_OVERLOAD: it will not be called. */
int renames_enter(struct renames *r, uint64_t bucket_id, const char *name, void (*fn)(void *arg),
                  void *arg, struct error *err);
bool renames_busy(struct renames *r, uint64_t bucket_id, const char *name);

struct rename_request {
    const char *id; /* the client's X-Request-Id, or one of ours that never comes again */
    uint64_t bucket_id;
    const char *name, *new_name;
};

void renames_note(struct renames *r, const struct rename_request *done);
bool renames_knows(struct renames *r, const struct rename_request *again);
