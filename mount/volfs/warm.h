/* Ranges of files come into the disk cache or the cache group, block by block. */
#pragma once

#include "mount/volfs/volfs.h"

/* Of what is committed of the inode: see volfs_warm(). */
int warm_inode(struct volfs *v, uint64_t ino, struct volfs_warm *w);
