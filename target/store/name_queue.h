/* Turns: what is done to one name goes one after the other, to several side by side.
 *
 *   enter(a)  enter(a)  enter(b)         a: first ─▶ second        b: only
 *
 * A job whose turn it is runs in a thread of a pool, and may wait there; those of one name run in
 * the order in which they came, in one thread.  Any thread may enter. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"

struct pool;
struct name_queue;

/* No more than `most` jobs wait, all names together. */
struct name_queue *name_queue_new(struct pool *pool, size_t most);
void name_queue_free(struct name_queue *t); /* none waits or runs; NULL is fine */
DEFINE_CLEANUP(struct name_queue, name_queue_free);

/* Does anybody wait or run for this name? */
bool name_queue_busy(struct name_queue *t, uint64_t bucket_id, const char *name);
/* E_OVERLOAD: fn() will not be called. */
int name_queue_enter(struct name_queue *t, uint64_t bucket_id, const char *name,
                     void (*fn)(void *arg), void *arg, struct error *err);
/* The same, and waits until fn() has returned.  Not from a turn of the same name. */
int name_queue_run(struct name_queue *t, uint64_t bucket_id, const char *name,
                   void (*fn)(void *arg), void *arg, struct error *err);
/* Waits until all that entered for this name before is through.  Not from a turn of the same name.
 */
int name_queue_await(struct name_queue *t, uint64_t bucket_id, const char *name, struct error *err);
