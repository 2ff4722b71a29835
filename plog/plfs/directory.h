/* Directories: prefixes of names.  An empty one has a mark, an object "NAME/", as in a mounted
 * bucket. */
#pragma once

#include <stdbool.h>

#include "plog/plfs/shim.h"

/* The key "" is the bucket. */
plfs_error_t shim_directory(struct dfc_client *client, const struct plfs_path *p, bool *is_there,
                            bool *is_empty);
