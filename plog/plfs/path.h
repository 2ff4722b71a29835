/* Paths of the calls of plfs.h, as names of objects: pure. */
#pragma once

#include <stdbool.h>

#include "common/cleanup.h"

struct plfs_path {
    char *bucket;
    char *key; /* "" for the bucket itself; no slash at its end */
};

/* False: it is outside the mount, names no bucket, or has a ".." or a name that is too long.
 * Slashes that repeat, and ".", are left out. */
bool plfs_path_parse(const char *path, const char *mount, struct plfs_path *out);
void plfs_path_done(struct plfs_path *p);
#define _cleanup_plfs_path_ _cleanup_(plfs_path_done)
