/* Numbers of inodes, slices and sessions.  A client takes them in ranges; what it does not use is
 * never given again. */
#pragma once

#include "mount/volume/volume_parts.h"

enum { IDS_INODE_RANGE = 1024, IDS_SLICE_RANGE = 4096, IDS_RANGES_AT_ONCE = 256 };

int ids_inode(struct volume *v, uint64_t *ino); /* 0 or -errno */
int ids_slice(struct volume *v, uint64_t *slice);
uint64_t ids_next_slice(struct volume *v); /* no smaller one will be given */
/* Ranges whose slices are all below are given up. */
int ids_settled(struct volume *v, uint64_t below);
