#include "mount/fuse/volume_locks.h"

#include <errno.h>
#include <sys/file.h>

#include "mount/fuse/locks.h"
#include "mount/fuse/operations.h"
#include "mount/volfs/volfs.h"

static struct locks *locks_of(fuse_req_t req)
{
    const struct operations *o = fuse_req_userdata(req);
    return o->locks;
}

/* What was written under a lock is committed before others get it. */
static void set_lock(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi,
                     const struct volume_lock *lock, bool waits)
{
    struct volfs_file *f = volfs_file_of(operations_volfs(req), fi->fh);
    int rc = f != NULL ? volfs_check_locks(f) : -EIO;
    if (rc == 0 && lock->type != VOLUME_LOCK_EXCLUSIVE)
        rc = volfs_settle(f);
    if (rc != 0 && lock->type != VOLUME_LOCK_NONE) {
        fuse_reply_err(req, -rc);
        return;
    }
    if (!lock->flock && lock->type != VOLUME_LOCK_NONE)
        locks_note(locks_of(req), fi->fh, lock->owner);
    locks_set(locks_of(req), req, node, lock, waits);
}

void volume_locks_getlk(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi,
                        struct flock *range)
{
    const struct volume_lock lock = locks_of_range(range, fi->lock_owner);
    locks_get(locks_of(req), req, node, &lock);
}

void volume_locks_setlk(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi,
                        struct flock *range, int waits)
{
    const struct volume_lock lock = locks_of_range(range, fi->lock_owner);
    set_lock(req, node, fi, &lock, waits != 0);
}

void volume_locks_flock(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi, int operation)
{
    const struct volume_lock lock = locks_of_file(operation, fi->lock_owner);
    set_lock(req, node, fi, &lock, (operation & LOCK_NB) == 0);
}
