/* The calls of a mounted bucket of plogs.  A file that this mount writes is not in the page cache;
 * pages of others are dropped when the file is opened, or its attributes change. */
#include "mount/fuse/operations.h"
#include "mount/fuse/link.h"
#include "mount/fuse/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "mount/plogs/plogs.h"
#include "plog/client/dfc_plog.h"

#define KERNEL_READAHEAD (1u << 20)

static struct operations *of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

static struct plogs *plogs_of(fuse_req_t req)
{
    return of(req)->plogs;
}

static void plogs_init(void *context, struct fuse_conn_info *conn)
{
    (void)context;
    conn->max_readahead = KERNEL_READAHEAD;
    conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
}

/* ---- names and attributes ---- */

static struct fuse_entry_param entry_of(fuse_req_t req, uint64_t node, const struct stat *st)
{
    return (struct fuse_entry_param){.ino = node,
                                     .attr = *st,
                                     .attr_timeout = of(req)->attr_ttl_s,
                                     .entry_timeout = of(req)->entry_ttl_s};
}

static void reply_entry(fuse_req_t req, int rc, uint64_t node, const struct stat *st)
{
    if (rc != 0) {
        fuse_reply_err(req, -rc);
        return;
    }
    struct plogs *p = plogs_of(req);
    const struct fuse_entry_param e = entry_of(req, node, st);
    if (fuse_reply_entry(req, &e) == -ENOENT) /* the caller has gone: the kernel counts nothing */
        plogs_forget(p, node, 1);
}

static void reply_attr(fuse_req_t req, int rc, const struct stat *st)
{
    if (rc != 0)
        fuse_reply_err(req, -rc);
    else
        fuse_reply_attr(req, st, of(req)->attr_ttl_s);
}

static void do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    uint64_t node = 0;
    struct stat st;
    const int rc = plogs_lookup(plogs_of(req), parent, name, &node, &st);
    reply_entry(req, rc, node, &st);
}

static void do_forget(fuse_req_t req, fuse_ino_t node, uint64_t uses)
{
    plogs_forget(plogs_of(req), node, uses);
    fuse_reply_none(req);
}

static void do_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
    for (size_t i = 0; i < count; i++)
        plogs_forget(plogs_of(req), forgets[i].ino, forgets[i].nlookup);
    fuse_reply_none(req);
}

static void do_getattr(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    struct stat st;
    (void)fi;
    const int rc = plogs_getattr(plogs_of(req), node, &st);
    reply_attr(req, rc, &st);
}

/* Of a plog: neither before 1970 nor beyond the greatest time of a head. */
static uint64_t ms_of(struct timespec t)
{
    if (t.tv_sec < 0)
        return 0;
    if ((uint64_t)t.tv_sec >= DFC_PLOG_MODIFIED_MAX / 1000)
        return DFC_PLOG_MODIFIED_MAX;
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void do_setattr(fuse_req_t req, fuse_ino_t node, struct stat *to, int which,
                       struct fuse_file_info *fi)
{
    struct stat st;
    const bool is_now = (which & FUSE_SET_ATTR_MTIME_NOW) != 0;
    const struct plogs_change c = {
        .sets_mode = (which & FUSE_SET_ATTR_MODE) != 0,
        .sets_uid = (which & FUSE_SET_ATTR_UID) != 0,
        .sets_gid = (which & FUSE_SET_ATTR_GID) != 0,
        .sets_size = (which & FUSE_SET_ATTR_SIZE) != 0,
        .sets_mtime = (which & (FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW)) != 0,
        .mode = to->st_mode,
        .uid = to->st_uid,
        .gid = to->st_gid,
        .size = (uint64_t)to->st_size,
        .mtime_ms = is_now ? (uint64_t)clock_wall_ms() : ms_of(to->st_mtim)};
    (void)fi;
    const int rc = plogs_setattr(plogs_of(req), node, &c, &st);
    reply_attr(req, rc, &st);
}

static void do_statfs(fuse_req_t req, fuse_ino_t node)
{
    struct statvfs st;
    (void)node;
    const int rc = plogs_statfs(plogs_of(req), &st);
    if (rc != 0)
        fuse_reply_err(req, -rc);
    else
        fuse_reply_statfs(req, &st);
}

static void do_getxattr(fuse_req_t req, fuse_ino_t node, const char *name, size_t room)
{
    _cleanup_free_ char *value = NULL;
    const int rc = plogs_getxattr(plogs_of(req), node, name, &value);
    operations_reply_value(req, rc, value, value != NULL ? strlen(value) : 0, room);
}

static void do_listxattr(fuse_req_t req, fuse_ino_t node, size_t room)
{
    _cleanup_free_ char *names = NULL;
    size_t size = 0;
    plogs_listxattr(plogs_of(req), node, &names, &size);
    operations_reply_value(req, 0, names, size, room);
}

/* ---- names that come and go ---- */

static void do_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    uint64_t node = 0;
    struct stat st;
    (void)mode;
    const int rc = plogs_mkdir(plogs_of(req), parent, name, &node, &st);
    reply_entry(req, rc, node, &st);
}

static void do_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    fuse_reply_err(req, -plogs_rmdir(plogs_of(req), parent, name));
}

static void do_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    fuse_reply_err(req, -plogs_unlink(plogs_of(req), parent, name));
}

/* EINVAL for flags that are not supported: mv(1) does without then. */
static void do_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
                      const char *new_name, unsigned flags)
{
    const int rc =
        flags != 0 ? -EINVAL : plogs_rename(plogs_of(req), parent, name, new_parent, new_name);
    fuse_reply_err(req, -rc);
}

static void do_link(fuse_req_t req, fuse_ino_t node, fuse_ino_t parent, const char *name)
{
    (void)node;
    (void)parent;
    (void)name;
    fuse_reply_err(req, EPERM);
}

static void do_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
    (void)target;
    (void)parent;
    (void)name;
    fuse_reply_err(req, EPERM);
}

static void do_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device)
{
    (void)parent;
    (void)name;
    (void)mode;
    (void)device;
    fuse_reply_err(req, EPERM);
}

/* ---- directories ---- */

static struct plogs_directory *directory_of(const struct fuse_file_info *fi)
{
    return (struct plogs_directory *)(uintptr_t)fi->fh;
}

static void do_opendir(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    struct plogs_directory *d;
    const int rc = plogs_opendir(plogs_of(req), node, &d);
    if (rc != 0) {
        fuse_reply_err(req, -rc);
        return;
    }
    fi->fh = (uint64_t)(uintptr_t)d;
    if (fuse_reply_open(req, fi) == -ENOENT)
        plogs_closedir(d);
}

static bool put_entry(void *context, const struct plogs_entry *e)
{
    struct page *p = context;
    const struct fuse_entry_param entry = {
        .attr = {.st_ino = e->inode, .st_mode = e->is_directory ? S_IFDIR : S_IFREG}};
    if (!page_has_room(p, e->name))
        return false;
    page_put(p, e->name, &entry, e->next);
    return true;
}

static void do_readdir(fuse_req_t req, fuse_ino_t node, size_t room, off_t offset,
                       struct fuse_file_info *fi)
{
    (void)node;
    struct page p = page_new(req, room, false);
    page_reply(&p, plogs_readdir(directory_of(fi), (uint64_t)offset, put_entry, &p));
}

static void do_releasedir(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    (void)node;
    plogs_closedir(directory_of(fi));
    fuse_reply_err(req, 0);
}

/* ---- files ---- */

static struct plogs_file *file_of(const struct fuse_file_info *fi)
{
    return (struct plogs_file *)(uintptr_t)fi->fh;
}

static void opened(struct plogs_file *f, struct fuse_file_info *fi)
{
    fi->fh = (uint64_t)(uintptr_t)f;
    fi->direct_io = plogs_is_written(f);
    if (fi->direct_io)
        link_parallel_writes();
}

static void do_open(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    struct plogs_file *f;
    const int rc = plogs_openfile(plogs_of(req), node, fi->flags, &f);
    if (rc != 0) {
        fuse_reply_err(req, -rc);
        return;
    }
    opened(f, fi);
    if (fuse_reply_open(req, fi) == -ENOENT)
        plogs_closefile(f);
}

static void do_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                      struct fuse_file_info *fi)
{
    uint64_t node;
    struct stat st;
    struct plogs_file *f;
    struct plogs *p = plogs_of(req);
    const struct fuse_ctx *caller = fuse_req_ctx(req);
    const struct plogs_create c = {.parent = parent,
                                   .name = name,
                                   .mode = mode,
                                   .uid = caller->uid,
                                   .gid = caller->gid,
                                   .flags = fi->flags};
    const int rc = plogs_create(p, &c, &node, &st, &f);
    if (rc != 0) {
        fuse_reply_err(req, -rc);
        return;
    }
    opened(f, fi);
    const struct fuse_entry_param e = entry_of(req, node, &st);
    if (fuse_reply_create(req, &e, fi) == -ENOENT) { /* the caller has gone */
        plogs_closefile(f);
        plogs_forget(p, node, 1);
    }
}

static void do_read(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
                    struct fuse_file_info *fi)
{
    (void)node;
    char *data = malloc(size);
    const ssize_t n =
        data == NULL ? -ENOMEM : plogs_read(file_of(fi), data, size, (uint64_t)offset);
    if (n < 0)
        fuse_reply_err(req, (int)-n);
    else
        fuse_reply_buf(req, data, (size_t)n);
    free(data);
}

static void do_write(fuse_req_t req, fuse_ino_t node, const char *from, size_t size, off_t offset,
                     struct fuse_file_info *fi)
{
    (void)node;
    const int rc = plogs_write(file_of(fi), from, size, (uint64_t)offset);
    if (rc != 0)
        fuse_reply_err(req, -rc);
    else
        fuse_reply_write(req, size);
}

static void do_flush(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    (void)node;
    fuse_reply_err(req, -plogs_flush(file_of(fi)));
}

static void do_fsync(fuse_req_t req, fuse_ino_t node, int datasync, struct fuse_file_info *fi)
{
    (void)node;
    (void)datasync;
    fuse_reply_err(req, -plogs_fsync(file_of(fi)));
}

static void do_release(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    (void)node;
    plogs_closefile(file_of(fi));
    fuse_reply_err(req, 0);
}

const struct fuse_lowlevel_ops plog_operations_table = {
    .init = plogs_init,
    .lookup = do_lookup,
    .forget = do_forget,
    .forget_multi = do_forget_multi,
    .getattr = do_getattr,
    .setattr = do_setattr,
    .statfs = do_statfs,
    .getxattr = do_getxattr,
    .listxattr = do_listxattr,
    .mkdir = do_mkdir,
    .rmdir = do_rmdir,
    .unlink = do_unlink,
    .rename = do_rename,
    .link = do_link,
    .symlink = do_symlink,
    .mknod = do_mknod,
    .opendir = do_opendir,
    .readdir = do_readdir,
    .releasedir = do_releasedir,
    .open = do_open,
    .create = do_create,
    .read = do_read,
    .write = do_write,
    .flush = do_flush,
    .fsync = do_fsync,
    .release = do_release,
};
