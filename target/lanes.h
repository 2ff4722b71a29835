/* Work on names, in the threads of a pool: for one name one after the other, in the order in which
 * it came; different names side by side.
 *
 *   "a": task ─▶ task ─▶ task        a lane is there while it has a task, waiting or running
 *   "b": task
 *
 * A task that cannot be queued any more (the pool is full) is refused before it has an effect.
 * Any thread may call anything. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct lanes;
struct pool;

struct lanes *lanes_new(struct pool *pool); /* which outlives its tasks */
void lanes_free(struct lanes *l);           /* no task is left; NULL is fine */

int lanes_submit(struct lanes *l, uint64_t bucket_id, const char *name, void (*fn)(void *arg),
                 void *arg, struct error *err);
/* Is a task waiting or running for this name? */
bool lanes_busy(struct lanes *l, uint64_t bucket_id, const char *name);
