/* By which boot id a target asks to be let in for the first time: the same in all its runs, until
 * it has a state.  It stands in <mountpath>/.dfc/docs/entry.json before it asks.
 *
 * Who was let in and died before the state that it was given was on its disks is thereby known
 * again: for the primary it is the process that has asked before and did not get the answer.  Who
 * comes with other mountpaths than it had (not mounted, or new ones) has another id, and is refused
 * as one that has forgotten everything. */
#pragma once

#include "target/disk/mountpaths.h"

/* `boot`: as it was drawn for this run; overwritten by that of an earlier one that had no state
 * either.  What cannot be read or written is logged: then only that protection is missing. */
void boot_id_of(struct mountpaths *m, char boot[static 16]);
/* It has a state. */
void boot_id_forget(struct mountpaths *m);
