/* Where a rename in a bucket that is written back is done: here, durably, and the backend follows;
 * or within the backend (cold_rename.h), which has the last word on what is not here.  Pure.
 *
 *   what the name has                                  done
 *   pending here                                       here
 *   a deletion pending here                            nowhere: there is no such object
 *   an object here, as the backend has it              here
 *   anything else; what an earlier owner has, newer    within the backend, if nothing waits for it
 */
#pragma once

#include "target/object.h"

enum rename_way { RENAME_THERE, RENAME_HERE, RENAME_NOTHING };

/* `earlier`: what earlier owners have (earlier.h).  fresh: what is here and not pending is what the
 * backend has, as far as that is asked (`validate`). */
enum rename_way rename_way(const struct object_held *here, const struct object_held *earlier,
                           bool fresh);
