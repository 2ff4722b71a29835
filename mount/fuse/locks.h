/* Locks of a volume's files, as the kernel asks for them.
 *
 * A call that must wait gives its thread back.  One thread asks again for all that wait, after
 * 10 ms first and 1 s at most, or at once if this mount releases a lock of the file. */
#pragma once

#include <fuse_lowlevel.h>
#include <stdbool.h>

#include "mount/volume/volume.h"

struct locks;

int locks_start(struct volume *v, struct fuse_session *fuse, struct locks **out);
/* What waits is interrupted.  Before the session ends; NULL is fine. */
void locks_stop(struct locks *l);

/* Replies, perhaps later. */
void locks_set(struct locks *l, fuse_req_t req, fuse_ino_t node, const struct volume_lock *lock,
               bool waits);
void locks_get(struct locks *l, fuse_req_t req, fuse_ino_t node, const struct volume_lock *lock);
/* All locks that the owner has of the file.  0 or -errno. */
int locks_drop(struct locks *l, fuse_ino_t node, uint64_t owner, bool flock);

/* The owner takes a lock of fcntl(2) through the open file `handle`. */
void locks_note(struct locks *l, uint64_t handle, uint64_t owner);
/* A close by the owner: its locks of fcntl(2) end.  0 or -errno. */
int locks_flush(struct locks *l, fuse_ino_t node, uint64_t handle, uint64_t owner);
/* The last close: locks of the open file itself (F_OFD_SETLK) end. */
void locks_release(struct locks *l, fuse_ino_t node, uint64_t handle);

/* Of struct flock, and of the operation of flock(2). */
struct volume_lock locks_of_range(const struct flock *range, uint64_t owner);
struct volume_lock locks_of_file(int operation, uint64_t owner);
