/* The floor of a target's versions: the counter above which new ones begin (version.h).  It is kept
 * on every mountpath (crash_state.h), so that no one disk's loss loses it; in force is the
 * greatest.
 *
 *   a tombstone goes for good            the floor rises to its counter before
 *   a damaged object is written over     by a step: nobody knows its version
 *   power was lost, a disk is lost       by a step, at the start
 *
 * Any thread may call anything. */
#pragma once

#include "target/disk/mountpaths.h"

uint64_t version_floor_in_force(const struct mountpaths *m);
/* The mountpaths' lives begin, one step higher if `step`, as far as they have not begun.  A disk
 * that cannot be written to does not keep the others from it, nor its own objects from being read.
 */
void version_floor_begin(struct mountpaths *m, bool step);
/* One more mountpath's life begins, before it is in force. */
int version_floor_join(struct mountpaths *m, struct mountpath *mp, struct error *err);
/* No new version has this counter or a lower one; durable when it returns.  It rises in few, large
 * strides. */
int version_floor_cover(struct mountpaths *m, uint64_t counter, struct error *err);
/* Above every version that was ever given. */
int version_floor_step(struct mountpaths *m, struct error *err);
