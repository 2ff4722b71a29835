/* The calls of operations.h that change something. */
#include "mount/fuse/operations.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "mount/fuse/closing.h"
#include "mount/fuse/interrupts.h"
#include "mount/vfs/vfs.h"

/* NULL: there is none. */
static struct vfs_file *file_of(fuse_req_t req, const struct fuse_file_info *fi)
{
    return vfs_file_of(operations_vfs(req), fi->fh);
}

static int64_t process_of(fuse_req_t req)
{
    return closing_process(fuse_req_ctx(req)->pid);
}

/* ---- names ---- */

/* A name that is gone was taken away by this very request, if the kernel has sent it again after a
 * crash. */
static void reply_gone(fuse_req_t req, int rc)
{
    fuse_reply_err(req, rc == -ENOENT && link_is_resent() ? 0 : -rc);
}

void change_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    uint64_t node;
    (void)mode;
    int rc = vfs_mkdir(operations_vfs(req), parent, name, &node);
    if (rc == -EEXIST && link_is_resent())
        rc = vfs_lookup(operations_vfs(req), parent, name, &node);
    if (rc != 0)
        fuse_reply_err(req, -rc);
    else
        operations_reply_entry(req, node);
}

void change_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    reply_gone(req, vfs_unlink(operations_vfs(req), parent, name));
}

void change_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    reply_gone(req, vfs_rmdir(operations_vfs(req), parent, name));
}

/* EINVAL for flags that are not supported: mv(1) does without then. */
void change_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
                   const char *new_name, unsigned flags)
{
    const struct vfs_rename r = {parent, name, new_parent, new_name};
    reply_gone(req, flags != 0 ? -EINVAL : vfs_rename(operations_vfs(req), &r));
}

void change_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
    (void)target;
    (void)parent;
    (void)name;
    fuse_reply_err(req, EOPNOTSUPP);
}

void change_link(fuse_req_t req, fuse_ino_t node, fuse_ino_t parent, const char *name)
{
    (void)node;
    (void)parent;
    (void)name;
    fuse_reply_err(req, EOPNOTSUPP);
}

void change_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device)
{
    (void)parent;
    (void)name;
    (void)mode;
    (void)device;
    fuse_reply_err(req, EOPNOTSUPP);
}

/* Owner, permissions and times are those of the mount and of the upload: programs may set them, and
 * nothing changes. */
void change_setattr(fuse_req_t req, fuse_ino_t node, struct stat *to, int which,
                    struct fuse_file_info *fi)
{
    (void)fi;
    int rc = (which & FUSE_SET_ATTR_SIZE) == 0
                 ? 0
                 : vfs_resize(operations_vfs(req), node, (uint64_t)to->st_size);
    if (rc != 0)
        fuse_reply_err(req, -rc);
    else
        operations_reply_attr(req, node);
}

/* ---- files ---- */

/* The page cache would mix what is written with the version before. */
static void opened(struct vfs_file *f, struct fuse_file_info *fi)
{
    fi->fh = vfs_file_id(f);
    fi->direct_io = 1;
}

void change_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                   struct fuse_file_info *fi)
{
    uint64_t node;
    struct vfs_file *f;
    const struct vfs_create c = {parent, name, fi->flags, process_of(req)};
    (void)mode;
    operations_waits(req);
    int rc = vfs_create(operations_vfs(req), &c, &node, &f);
    interrupts_end();
    if (rc != 0) {
        fuse_reply_err(req, -rc);
        return;
    }
    opened(f, fi);
    const struct fuse_entry_param e = operations_entry(req, node);
    if (fuse_reply_create(req, &e, fi) == -ENOENT) { /* the caller has gone */
        vfs_drop(f);
        vfs_closefile(f);
        vfs_forget(operations_vfs(req), node, 1);
    }
}

void change_open(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    struct vfs_file *f;
    operations_waits(req);
    int rc = vfs_openwrite(operations_vfs(req), node, fi->flags, process_of(req), &f);
    interrupts_end();
    if (rc != 0) {
        fuse_reply_err(req, -rc);
        return;
    }
    opened(f, fi);
    if (fuse_reply_open(req, fi) == -ENOENT) {
        vfs_drop(f);
        vfs_closefile(f);
    }
}

void change_write(fuse_req_t req, fuse_ino_t node, const char *from, size_t size, off_t offset,
                  struct fuse_file_info *fi)
{
    (void)node;
    const struct vfs_read r = {
        .offset = (uint64_t)offset,
        .size = size,
        .interrupted = operations_interrupted,
        .context = req,
    };
    struct vfs_file *f = file_of(req, fi);
    ssize_t n = f != NULL ? vfs_write(f, &r, from) : -EIO;
    if (n < 0)
        fuse_reply_err(req, (int)-n);
    else
        fuse_reply_write(req, (size_t)n);
}

void change_flush(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    int rc = 0;
    struct vfs_file *f = file_of(req, fi);
    (void)node;
    if (f != NULL && vfs_is_written(f)) {
        const struct closing_file file = {
            .opener = vfs_process(f),
            .inode = vfs_inode(f),
            .device = operations_device(req),
        };
        enum closing closing = closing_of(&file, fuse_req_ctx(req)->pid);
        if (closing == CLOSING_STORE)
            rc = vfs_store(f);
        else if (closing == CLOSING_DROP)
            vfs_drop(f);
    }
    fuse_reply_err(req, -rc);
}

void change_fsync(fuse_req_t req, fuse_ino_t node, int datasync, struct fuse_file_info *fi)
{
    (void)node;
    (void)datasync;
    struct vfs_file *f = file_of(req, fi);
    fuse_reply_err(req, f != NULL ? -vfs_store(f) : EIO);
}
