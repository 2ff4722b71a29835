/* Where a rename in a bucket that is written back is done: here, durably, and the backend follows;
 * or within the backend (cold/rename.h), which has the last word on what is not here.  Pure.
 *
 *   what the name has                                  done
 *   pending here                                       here
 *   a deletion pending here                            nowhere: there is no such object
 *   an object here, as the backend has it, with
 *     metadata that can be sent there                  here
 *   anything else; what an earlier owner has, newer    within the backend, if nothing waits for it
 */
#pragma once

#include "target/store/object.h"

enum rename_way { RENAME_THERE, RENAME_HERE, RENAME_NOTHING };

/* `earlier`: what earlier owners have (earlier_owners.h).  fresh: what is here and not pending is
 * what the backend has, as far as that is asked (`validate`), and can be sent there. */
enum rename_way rename_way(const struct object_held *here, const struct object_held *earlier,
                           bool fresh);

/* How long the old name's owner waits for a copy within the backend, which the new name's owner
 * makes: for as long as that may take at it, with all its tries, and no longer, for it may hang. */
struct rename_patience {
    uint64_t call_ms; /* between targets, where nothing is done … */
    uint64_t try_ms;  /* … and each try of a request to the backend, with the pause after it */
    uint64_t tries;   /* of one request */
};
enum { RENAME_COPY_MAX_MS = 7 * 24 * 3600 * 1000 };
uint64_t rename_copy_ms(const struct rename_patience *p, uint64_t size);
