/* The calls of a mounted volume.  A node is an inode's number, which is never given again, so that
 * nothing has to be forgotten. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/log.h"
#include "common/mem.h"
#include "mount/fuse/locks.h"
#include "mount/fuse/lost.h"
#include "mount/fuse/operations.h"
#include "mount/fuse/page.h"
#include "mount/fuse/volume_locks.h"
#include "mount/fuse/volume_xattrs.h"
#include "mount/volfs/volfs.h"
#include "mount/volume/trees/access.h"

enum { KERNEL_READAHEAD = 1 << 20 };

static struct operations *of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

static struct volume *volume_of(fuse_req_t req)
{
    return volfs_volume(of(req)->volfs);
}

static void do_init(void *context, struct fuse_conn_info *conn)
{
    (void)context;
    conn->max_readahead = KERNEL_READAHEAD;
    /* The kernel knows who keeps set-id bits; also an open that truncates then is a setattr. */
    conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE |
                              FUSE_CAP_HANDLE_KILLPRIV | FUSE_CAP_ATOMIC_O_TRUNC);
    /* Handles of files (open_by_handle_at(2), NFS) are looked up as ".". */
    conn->want |= conn->capable & FUSE_CAP_EXPORT_SUPPORT;
}

/* ---- replies ---- */

static void reply_error(fuse_req_t req, int rc)
{
    fuse_reply_err(req, -rc);
}

static struct fuse_entry_param entry_of(fuse_req_t req, const struct stat *st)
{
    return (struct fuse_entry_param){
        .ino = st->st_ino,
        .attr = *st,
        .attr_timeout = of(req)->attr_ttl_s,
        .entry_timeout = of(req)->entry_ttl_s,
    };
}

static void reply_inode(fuse_req_t req, int rc, const struct volume_inode *inode)
{
    struct stat st;
    if (rc != 0) {
        reply_error(req, rc);
        return;
    }
    volfs_stat(of(req)->volfs, inode, &st);
    const struct fuse_entry_param e = entry_of(req, &st);
    fuse_reply_entry(req, &e);
}

static void reply_attr(fuse_req_t req, int rc, const struct stat *st)
{
    if (rc != 0)
        reply_error(req, rc);
    else
        fuse_reply_attr(req, st, of(req)->attr_ttl_s);
}

/* ---- calls that come again ---- */

bool operations_call_begin(fuse_req_t req)
{
    return volume_call_begin(volume_of(req), link_request());
}

/* ---- names ---- */

static int lookup(fuse_req_t req, fuse_ino_t parent, const char *name, struct volume_inode *found)
{
    struct attr a;
    if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
        return volume_lookup(volume_of(req), parent, name, found);
    int rc = volume_getattr(volume_of(req), parent, &a);
    if (rc == 0 && a.nlink == 0)
        rc = -ENOENT;
    found->ino = name[1] == '.' ? a.parent : parent;
    return rc != 0 ? rc : volume_getattr(volume_of(req), found->ino, &found->attr);
}

static void do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct volume_inode found;
    int rc = lookup(req, parent, name, &found);
    reply_inode(req, rc, &found);
}

static void create(fuse_req_t req, fuse_ino_t parent, const char *name, struct volume_new what)
{
    struct volume_inode made;
    struct volume *v = volume_of(req);
    const struct fuse_ctx *ctx = fuse_req_ctx(req);
    what.uid = ctx->uid;
    what.gid = ctx->gid;
    int rc = operations_call_begin(req) ? volume_lookup(v, parent, name, &made)
                                        : volume_create(v, parent, name, &what, &made);
    reply_inode(req, rc, &made);
    volume_call_end();
}

static void do_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device)
{
    create(req, parent, name, (struct volume_new){.mode = mode, .rdev = (uint32_t)device});
}

static void do_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    create(req, parent, name, (struct volume_new){.mode = S_IFDIR | (mode & 07777)});
}

static void do_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
    create(req, parent, name, (struct volume_new){.mode = S_IFLNK | 0777, .target = target});
}

static void do_link(fuse_req_t req, fuse_ino_t node, fuse_ino_t parent, const char *name)
{
    struct volume_inode linked;
    struct volume *v = volume_of(req);
    int rc = operations_call_begin(req) ? volume_lookup(v, parent, name, &linked)
                                        : volume_link(v, node, parent, name, &linked);
    reply_inode(req, rc, &linked);
    volume_call_end();
}

static void do_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    reply_error(req, operations_call_begin(req) ? 0 : volume_unlink(volume_of(req), parent, name));
    volume_call_end();
}

static void do_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    reply_error(req, operations_call_begin(req) ? 0 : volume_rmdir(volume_of(req), parent, name));
    volume_call_end();
}

static void do_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
                      const char *new_name, unsigned flags)
{
    reply_error(req, operations_call_begin(req) ? 0
                                                : volume_rename(volume_of(req), parent, name,
                                                                new_parent, new_name, flags));
    volume_call_end();
}

static void do_readlink(fuse_req_t req, fuse_ino_t node)
{
    char *target;
    struct arena *arena = arena_new(1024);
    int rc = volume_readlink(volume_of(req), node, arena, &target);
    if (rc != 0)
        reply_error(req, rc);
    else
        fuse_reply_readlink(req, target);
    arena_free(arena);
}

/* ---- attributes ---- */

static void do_getattr(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    struct stat st;
    (void)fi;
    int rc = volfs_getattr(of(req)->volfs, node, &st);
    reply_attr(req, rc, &st);
}

static int64_t ns_of(const struct timespec *t)
{
    return t->tv_sec * 1000000000LL + t->tv_nsec;
}

static void do_setattr(fuse_req_t req, fuse_ino_t node, struct stat *to, int which,
                       struct fuse_file_info *fi)
{
    static const struct {
        int fuse;
        unsigned field;
    } fields[] = {
        {FUSE_SET_ATTR_MODE, VOLUME_SET_MODE},
        {FUSE_SET_ATTR_UID, VOLUME_SET_UID},
        {FUSE_SET_ATTR_GID, VOLUME_SET_GID},
        {FUSE_SET_ATTR_SIZE, VOLUME_SET_LENGTH},
        {FUSE_SET_ATTR_ATIME, VOLUME_SET_ATIME},
        {FUSE_SET_ATTR_MTIME, VOLUME_SET_MTIME},
        {FUSE_SET_ATTR_ATIME_NOW, VOLUME_SET_ATIME_NOW},
        {FUSE_SET_ATTR_MTIME_NOW, VOLUME_SET_MTIME_NOW},
    };
    struct stat st;
    struct volume_set set = {
        .mode = to->st_mode,
        .uid = to->st_uid,
        .gid = to->st_gid,
        .length = to->st_size,
        .atime_ns = ns_of(&to->st_atim),
        .mtime_ns = ns_of(&to->st_mtim),
    };
    (void)fi;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        set.fields |= (which & fields[i].fuse) != 0 ? fields[i].field : 0;
    int rc = operations_call_begin(req) ? volfs_getattr(of(req)->volfs, node, &st)
                                        : volfs_setattr(of(req)->volfs, node, &set, &st);
    reply_attr(req, rc, &st);
    volume_call_end();
}

static void do_statfs(fuse_req_t req, fuse_ino_t node)
{
    struct statvfs st;
    int rc = volfs_statfs(of(req)->volfs, node, &st);
    if (rc != 0)
        reply_error(req, rc);
    else
        fuse_reply_statfs(req, &st);
}

/* ---- directories ---- */

static void do_opendir(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    struct volfs_directory *d;
    int rc = volfs_opendir(of(req)->volfs, node, &d);
    if (rc != 0) {
        reply_error(req, rc);
        return;
    }
    fi->fh = volfs_directory_id(d);
    if (fuse_reply_open(req, fi) == -ENOENT)
        volfs_closedir(d);
}

static void do_releasedir(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    (void)node;
    struct volfs_directory *d = volfs_directory_of(of(req)->volfs, fi->fh);
    if (d != NULL) /* else the kernel has sent this again */
        volfs_closedir(d);
    reply_error(req, 0);
}

/* Names and attributes are as old as the page that they were read with, and so much less may the
 * kernel keep them.  So it has none that are older than after a lookup: behind --attr-ttl an entry
 * has no attributes, and the kernel looks the name up. */
static void take_attributes(fuse_req_t req, const struct volfs_entry *e,
                            struct fuse_entry_param *entry)
{
    const double age_s = (double)e->age_ms / 1000;
    if (!e->known || age_s >= of(req)->attr_ttl_s)
        return;
    *entry = entry_of(req, &e->st);
    entry->attr_timeout -= age_s;
    entry->entry_timeout = entry->entry_timeout > age_s ? entry->entry_timeout - age_s : 0;
}

static bool page_take(void *context, const struct volfs_entry *e)
{
    struct page *p = context;
    struct fuse_entry_param entry = {.attr = e->st}; /* node 0: no attributes */
    take_attributes(p->req, e, &entry);
    if (!page_has_room(p, e->name))
        return false;
    page_put(p, e->name, &entry, e->next);
    return true;
}

static void reply_page(fuse_req_t req, size_t room, off_t offset, struct fuse_file_info *fi,
                       bool plus)
{
    struct page p = page_new(req, room, plus);
    struct volfs_directory *d = volfs_directory_of(of(req)->volfs, fi->fh);
    page_reply(&p, d != NULL ? volfs_readdir(d, (uint64_t)offset, page_take, &p) : -EIO);
}

static void do_readdir(fuse_req_t req, fuse_ino_t node, size_t room, off_t offset,
                       struct fuse_file_info *fi)
{
    (void)node;
    reply_page(req, room, offset, fi, false);
}

static void do_readdirplus(fuse_req_t req, fuse_ino_t node, size_t room, off_t offset,
                           struct fuse_file_info *fi)
{
    (void)node;
    reply_page(req, room, offset, fi, true);
}

/* ---- files ---- */

/* NULL: the kernel has sent a release again. */
static struct volfs_file *file_of(fuse_req_t req, const struct fuse_file_info *fi)
{
    return volfs_file_of(of(req)->volfs, fi->fh);
}

/* What is to be changed through the handle: see volfs_check_write(). */
static int check(struct volfs_file *f)
{
    return f != NULL ? volfs_check_write(f) : -EIO;
}

/* The length that the kernel keeps may be older than a close in another mount, and the kernel cuts
 * reads there.  A list of before gives it none any more.  ENOENT: it keeps nothing. */
static void forget_length(fuse_req_t req, fuse_ino_t node)
{
    const struct operations *o = of(req);
    if (o->attr_ttl_s <= 0)
        return;
    volume_note_changed(volume_of(req), node);
    int rc = fuse_lowlevel_notify_inval_inode(o->fuse, node, -1, 0);
    if (rc != 0 && rc != -ENOENT)
        log_warn("attributes stay with the kernel until --attr-ttl", li64("error", -rc));
}

static int open_file(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    struct volfs_file *f;
    struct stat st;
    const struct volume_set empty = {.fields = VOLUME_SET_LENGTH};
    /* The kernel does not know where appended bytes come, so it must not keep
   * them as pages. */
    fi->direct_io = (fi->flags & O_APPEND) != 0;
    int rc = volfs_openfile(of(req)->volfs, node, fi->direct_io, &f);
    if (rc != 0)
        return rc;
    fi->fh = volfs_file_id(f);
    if ((fi->flags & O_TRUNC) != 0) /* a create that found the file */
        rc = volfs_setattr(of(req)->volfs, node, &empty, &st);
    if (rc != 0)
        volfs_closefile(f);
    else
        forget_length(req, node);
    return rc;
}

static void do_open(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    struct volfs *v = of(req)->volfs;
    int rc = open_file(req, node, fi);
    if (rc != 0)
        reply_error(req, rc);
    else if (fuse_reply_open(req, fi) == -ENOENT) /* the caller has gone */
        volfs_closefile(volfs_file_of(v, fi->fh));
}

static unsigned wanted_by(int flags)
{
    const int mode = flags & O_ACCMODE;
    const bool writes = mode != O_RDONLY || (flags & O_TRUNC) != 0;
    return (mode != O_WRONLY ? ACCESS_READ : 0u) | (writes ? ACCESS_WRITE : 0u);
}

/* May a create open what is there?  The kernel believes that the file is new, and checks no rights.
 * So this opens files of the caller alone.  ESTALE: the kernel looks the name up again, and checks
 * all. */
static int find_own(fuse_req_t req, fuse_ino_t parent, const char *name, unsigned wanted,
                    struct volume_inode *found)
{
    int rc = volume_lookup(volume_of(req), parent, name, found);
    if (rc != 0)
        return rc == -ENOENT ? -ESTALE : rc;
    const struct attr *a = &found->attr;
    const bool is_own = S_ISREG(a->mode) && a->uid == fuse_req_ctx(req)->uid;
    return is_own && (a->mode >> 6 & wanted) == wanted ? 0 : -ESTALE;
}

static int create_file(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                       const struct fuse_file_info *fi, struct volume_inode *made)
{
    const struct fuse_ctx *ctx = fuse_req_ctx(req);
    const struct volume_new what = {
        .mode = S_IFREG | (mode & 07777), .uid = ctx->uid, .gid = ctx->gid};
    if (operations_call_begin(req)) /* its mode may allow less than its open */
        return find_own(req, parent, name, 0, made);
    int rc = volume_create(volume_of(req), parent, name, &what, made);
    if (rc == -EEXIST && (fi->flags & O_EXCL) == 0) /* another client was first */
        rc = find_own(req, parent, name, wanted_by(fi->flags), made);
    return rc;
}

static void do_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                      struct fuse_file_info *fi)
{
    struct volume_inode made;
    struct stat st;
    struct volfs *v = of(req)->volfs;
    int rc = create_file(req, parent, name, mode, fi, &made);
    if (rc == 0)
        rc = open_file(req, made.ino, fi);
    if (rc == 0) {
        volfs_stat(v, &made, &st);
        const struct fuse_entry_param e = entry_of(req, &st);
        if (fuse_reply_create(req, &e, fi) == -ENOENT)
            volfs_closefile(volfs_file_of(v, fi->fh));
    } else {
        reply_error(req, rc);
    }
    volume_call_end();
}

static void do_release(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    struct volfs_file *f = file_of(req, fi);
    if (f != NULL) {     /* else the kernel has sent this again */
        volfs_settle(f); /* before others get its locks; the close logs what fails */
        locks_release(of(req)->locks, node, fi->fh);
        volfs_closefile(f);
    }
    if (fi->flock_release)
        locks_drop(of(req)->locks, node, fi->lock_owner, true);
    reply_error(req, 0);
}

static struct volfs_range range_of(fuse_req_t req, size_t size, off_t offset)
{
    return (struct volfs_range){
        .offset = offset, .size = size, .interrupted = operations_interrupted, .context = req};
}

static void do_read(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
                    struct fuse_file_info *fi)
{
    (void)node;
    const struct volfs_range r = range_of(req, size, offset);
    char *data = malloc(size);
    struct volfs_file *f = file_of(req, fi);
    ssize_t n = f == NULL ? -EIO : data != NULL ? volfs_read(f, &r, data) : -ENOMEM;
    if (n < 0)
        reply_error(req, (int)n);
    else
        fuse_reply_buf(req, data, (size_t)n);
    free(data);
}

/* By a handle with direct_io: the kernel drops no set-id bits then, and syncs nothing. */
static ssize_t append(fuse_req_t req, struct volfs_file *f, const char *from,
                      const struct volfs_range *r, int flags)
{
    const bool syncs = (flags & O_DSYNC) != 0; /* O_SYNC has it, too */
    if (syncs && link_is_resent())
        return -EIO; /* it may be committed, and must not be appended twice */
    if (fuse_req_ctx(req)->uid != 0)
        volfs_drop_setid(f);
    const ssize_t n =
        (flags & O_APPEND) != 0 ? volfs_append(f, from, r->size) : volfs_write(f, r, from);
    const int rc = n >= 0 && syncs ? volfs_flush(f) : 0;
    return rc != 0 ? rc : n;
}

static void do_write(fuse_req_t req, fuse_ino_t node, const char *from, size_t size, off_t offset,
                     struct fuse_file_info *fi)
{
    (void)node;
    const struct volfs_range r = range_of(req, size, offset);
    struct volfs_file *f = file_of(req, fi);
    ssize_t n = check(f);
    if (n == 0)
        n = volfs_appends(f) ? append(req, f, from, &r, fi->flags) : volfs_write(f, &r, from);
    if (n < 0)
        reply_error(req, (int)n);
    else
        fuse_reply_write(req, (size_t)n);
}

/* Of a close.  Bytes that were lost are its error, and what came later is stored nevertheless. */
static int flush(fuse_req_t req, struct volfs_file *f)
{
    int rc = f != NULL ? volfs_check_locks(f) : -EIO;
    if (rc != 0 || !volfs_is_lost(f))
        return rc != 0 ? rc : volfs_flush(f);
    lost_wait(of(req)->lost);
    volfs_settle(f); /* its error is the same, or less */
    return -EIO;
}

/* A close: also the end of the owner's locks of fcntl(2). */
static void do_flush(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    int rc = flush(req, file_of(req, fi));
    int dropped = locks_flush(of(req)->locks, node, fi->fh, fi->lock_owner);
    reply_error(req, rc != 0 ? rc : dropped);
}

static void reply_lost(void *req)
{
    reply_error(req, -EIO);
}

static void do_fsync(fuse_req_t req, fuse_ino_t node, int datasync, struct fuse_file_info *fi)
{
    (void)node;
    (void)datasync;
    struct volfs_file *f = file_of(req, fi);
    int rc = f != NULL ? volfs_check_locks(f) : -EIO;
    if (rc == 0 && volfs_is_lost(f)) {
        lost_wait(of(req)->lost);
        if (volfs_tell_lost(f, reply_lost, req))
            return; /* the handle may be gone */
    }
    reply_error(req, rc == 0 ? volfs_flush(f) : rc);
}

static void do_fallocate(fuse_req_t req, fuse_ino_t node, int mode, off_t offset, off_t length,
                         struct fuse_file_info *fi)
{
    (void)node;
    struct volfs_file *f = file_of(req, fi);
    int rc = check(f);
    if (rc != 0)
        lost_wait(of(req)->lost);
    else
        rc = volfs_allocate(f, (unsigned)mode, offset, (uint64_t)length);
    reply_error(req, rc);
}

/* The kernel knows where SEEK_SET and the others lead to. */
static void do_lseek(fuse_req_t req, fuse_ino_t node, off_t offset, int whence,
                     struct fuse_file_info *fi)
{
    int64_t found = 0;
    (void)node;
    struct volfs_file *f = file_of(req, fi);
    int rc = f != NULL ? volfs_seek(f, offset, whence == SEEK_HOLE, &found) : -EIO;
    if (rc != 0)
        reply_error(req, rc);
    else
        fuse_reply_lseek(req, found);
}

/* Commits of names are durable when they return. */
static void do_fsyncdir(fuse_req_t req, fuse_ino_t node, int datasync, struct fuse_file_info *fi)
{
    (void)node;
    (void)datasync;
    (void)fi;
    reply_error(req, 0);
}

const struct fuse_lowlevel_ops volume_operations_table = {
    .init = do_init,
    .lookup = do_lookup,
    .getattr = do_getattr,
    .setattr = do_setattr,
    .statfs = do_statfs,
    .readlink = do_readlink,
    .mknod = do_mknod,
    .mkdir = do_mkdir,
    .symlink = do_symlink,
    .link = do_link,
    .unlink = do_unlink,
    .rmdir = do_rmdir,
    .rename = do_rename,
    .getxattr = xattrs_get,
    .listxattr = xattrs_list,
    .setxattr = xattrs_set,
    .removexattr = xattrs_remove,
    .opendir = do_opendir,
    .readdir = do_readdir,
    .readdirplus = do_readdirplus,
    .releasedir = do_releasedir,
    .fsyncdir = do_fsyncdir,
    .open = do_open,
    .create = do_create,
    .read = do_read,
    .write = do_write,
    .flush = do_flush,
    .fsync = do_fsync,
    .release = do_release,
    .fallocate = do_fallocate,
    .lseek = do_lseek,
    .getlk = volume_locks_getlk,
    .setlk = volume_locks_setlk,
    .flock = volume_locks_flock,
    .ioctl = volume_control_ioctl,
};
