#include "mount/fuse/control.h"

#include <errno.h>
#include <string.h>

#include "mount/fuse/operations.h"
#include "mount/vfs/vfs.h"
#include "mount/volfs/volfs.h"

static int warm_volume(struct volfs_file *f, struct control_warm *c)
{
    if (f == NULL)
        return -EIO;
    struct volfs_warm w = {.offset = c->offset, .size = c->size, .fetch = c->fetch != 0};
    int rc = volfs_warm(f, &w);
    c->had_bytes = w.had_bytes;
    c->has_bytes = w.has_bytes;
    return rc;
}

static int warm_bucket(struct vfs_file *f, struct control_warm *c)
{
    if (f == NULL)
        return -ESTALE; /* a process before had it, and lost it */
    struct vfs_warm w = {.offset = c->offset, .size = c->size, .fetch = c->fetch != 0};
    int rc = vfs_warm(f, &w);
    c->had_bytes = w.had_bytes;
    c->has_bytes = w.has_bytes;
    return rc;
}

void control_ioctl(fuse_req_t req, fuse_ino_t node, unsigned command, void *arg,
                   struct fuse_file_info *fi, unsigned flags, const void *in, size_t in_size,
                   size_t out_size)
{
    struct control_warm c;
    (void)node;
    (void)arg;
    if (command != CONTROL_WARM || (flags & FUSE_IOCTL_DIR) != 0 || in_size != sizeof c ||
        out_size != sizeof c) {
        fuse_reply_err(req, ENOTTY);
        return;
    }
    memcpy(&c, in, sizeof c);
    struct vfs *vfs = operations_vfs(req);
    int rc = vfs != NULL ? warm_bucket(vfs_file_of(vfs, fi->fh), &c)
                         : warm_volume(volfs_file_of(operations_volfs(req), fi->fh), &c);
    if (rc != 0)
        fuse_reply_err(req, -rc);
    else
        fuse_reply_ioctl(req, 0, &c, sizeof c);
}
