/* Resilver: moves what lies elsewhere than HRW wants it, mountpath by mountpath, until the set is
 * settled; then those that were leaving are released.
 *
 *   pass      the names of each index whose place is another mountpath are moved (store/move.h)
 *   wait      for requests that began under an earlier set, and may write where that wanted it
 *   settle    when a pass that began with none of those has found nothing to move, and what is
 *             leaving is empty: all disks are synced, the roster says so
 *
 * Objects stay readable and listed.  What a job holds (its marks, its pins on a leaving mountpath)
 * is waited for.  A crash leaves a set that is not settled, and the next resilver goes on. */
#pragma once

#include "target/store/job_stop.h"
#include "target/store/job_tally.h"
#include "target/store/object.h"

/* Ends with the set settled, or with why it cannot be: E_MOUNTPATH_DISABLED (what a disabled member
 * holds cannot be known), E_CORRUPT (damaged objects on one that is to leave), E_NO_SPACE, …;
 * E_ABORTED when it is stopped. */
int resilver_run(struct object_store *s, struct job_stop *stop, struct job_tally *tally,
                 struct error *err);
