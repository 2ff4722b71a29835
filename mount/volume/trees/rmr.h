/* Removal of a tree, also of an hour of the trash: for the cleaning, and for clones that failed. */
#pragma once

#include "mount/volume/trees/trees.h"

/* For ever, and one by one. */
int remove_tree(struct volume *v, uint64_t directory, const char *name,
                const struct volume_caller *caller, struct volume_tally *tally);
