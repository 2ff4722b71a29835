/* Blocks of slices that no file names any more, and whose grace is over. */
#pragma once

#include "mount/volfs/store.h"
#include "mount/volume/volume.h"

struct garbage_tally {
    uint64_t slices, bytes;
};

/* Deletes all that are due.  The first error ends it: 0 or -errno. */
int garbage_remove(struct volume *v, const struct volfs_store *store,
                   struct garbage_tally *removed);
