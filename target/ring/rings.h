/* The rings of a target: each bucket of the state that is one, and the thread that gives each its
 * steps (keep.h): soon after a push or a change of the map, and once in ring_heartbeat.  What was
 * destroyed is removed.
 * Their gauges are set once in ring_heartbeat. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cluster/documents/state.h"
#include "common/error.h"

struct ring;
struct ring_wait;
struct rings;
struct target;

int rings_new(struct target *t, struct rings **out, struct error *err);
/* No step begins any more.  NULL is fine. */
void rings_stop(struct rings *all);
void rings_free(struct rings *all); /* after the servers; NULL is fine */

/* A reference for rings_unref().  E_RING: the bucket is none; E_NOT_READY: it is destroyed now. */
int rings_get(struct rings *all, const struct cluster_state *s, const struct bucket *b,
              struct ring **out, struct error *err);
void rings_unref(struct ring *r);
/* Something has changed: a step follows soon. */
void rings_wake(struct ring *r);
/* Another state is in force: rings are removed, and those of a new map report to its keepers. */
void rings_state_changed(struct rings *all);

/* wait->reply(wait->arg), in another thread, once it is due (waits.h), or the target ends.  The
 * wait stays until then.  E_OVERLOAD, E_NOT_READY. */
int rings_wait(struct rings *all, struct ring_wait *wait, struct error *err);

/* fn(arg) in a thread that may wait for the disk, or for peers.  E_OVERLOAD. */
int rings_run(struct rings *all, void (*fn)(void *arg), void *arg, struct error *err);
int rings_run_long(struct rings *all, void (*fn)(void *arg), void *arg, struct error *err);
/* Memory of a push of so many bytes; false: there is too much under way. */
bool rings_take_memory(struct rings *all, uint64_t bytes);
void rings_give_memory(struct rings *all, uint64_t bytes);
