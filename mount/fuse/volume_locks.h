/* The calls of fcntl(2) and flock(2) on files of a volume: what they have to do with the open file.
 * The locks themselves are those of mount/fuse/locks.h. */
#pragma once

#include <fuse_lowlevel.h>

void volume_locks_getlk(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi,
                        struct flock *range);
void volume_locks_setlk(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi,
                        struct flock *range, int waits);
void volume_locks_flock(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi, int operation);
