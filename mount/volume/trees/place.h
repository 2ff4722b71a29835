/* Where a clone, or what comes back from the trash, gets its name. */
#pragma once

#include "mount/volume/trees/trees.h"

/* The name is free, the caller may make it, and the caller's way from the root leads there: 0,
 * EEXIST, EACCES, ENOENT, ENOTDIR. */
int place_check(struct volume *v, uint64_t directory, const char *name,
                const struct volume_caller *caller);
