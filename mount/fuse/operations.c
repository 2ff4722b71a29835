#include "mount/fuse/operations.h"
#include "mount/fuse/interrupts.h"
#include "mount/fuse/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/fault.h"
#include "common/mem.h"
#include "mount/vfs/vfs.h"

#define KERNEL_READAHEAD (1u << 20)

static struct operations *of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

struct vfs *operations_vfs(fuse_req_t req)
{
    return of(req)->vfs;
}

struct volfs *operations_volfs(fuse_req_t req)
{
    return of(req)->volfs;
}

struct link *link_of(void *userdata)
{
    return &((struct operations *)userdata)->link;
}

uint64_t operations_device(fuse_req_t req)
{
    return of(req)->device;
}

void operations_waits(fuse_req_t req)
{
    interrupts_begin(req, of(req)->fuse);
}

static void do_init(void *context, struct fuse_conn_info *conn)
{
    (void)context;
    conn->max_readahead = KERNEL_READAHEAD;
    /* Splicing a reply that is in memory costs more than copying it. */
    conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
}

/* ---- names and attributes ---- */

/* What changes is asked for each time. */
static double ttl_of(fuse_req_t req, uint64_t node, double ttl_s)
{
    return vfs_is_draft(operations_vfs(req), node) ? 0 : ttl_s;
}

struct fuse_entry_param operations_entry(fuse_req_t req, uint64_t node)
{
    struct fuse_entry_param e = {
        .ino = node,
        .attr_timeout = ttl_of(req, node, of(req)->attr_ttl_s),
        .entry_timeout = ttl_of(req, node, of(req)->entry_ttl_s),
    };
    vfs_getattr(operations_vfs(req), node, &e.attr);
    return e;
}

void operations_reply_entry(fuse_req_t req, uint64_t node)
{
    struct vfs *v = operations_vfs(req);
    const struct fuse_entry_param e = operations_entry(req, node);
    if (fuse_reply_entry(req, &e) == -ENOENT) /* the caller has gone: the kernel counts nothing */
        vfs_forget(v, node, 1);
}

void operations_reply_attr(fuse_req_t req, uint64_t node)
{
    struct stat st;
    vfs_getattr(operations_vfs(req), node, &st);
    fuse_reply_attr(req, &st, ttl_of(req, node, of(req)->attr_ttl_s));
}

static void do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    uint64_t node;
    operations_waits(req);
    int rc = vfs_lookup(operations_vfs(req), parent, name, &node);
    interrupts_end();
    if (rc != 0)
        fuse_reply_err(req, -rc);
    else
        operations_reply_entry(req, node);
}

static void do_forget(fuse_req_t req, fuse_ino_t node, uint64_t uses)
{
    vfs_forget(operations_vfs(req), node, uses);
    fuse_reply_none(req);
}

static void do_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
    for (size_t i = 0; i < count; i++)
        vfs_forget(operations_vfs(req), forgets[i].ino, forgets[i].nlookup);
    fuse_reply_none(req);
}

static void do_getattr(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    (void)fi;
    operations_reply_attr(req, node);
}

static void do_statfs(fuse_req_t req, fuse_ino_t node)
{
    struct statvfs st;
    (void)node;
    operations_waits(req);
    int rc = vfs_statfs(operations_vfs(req), &st);
    interrupts_end();
    if (rc != 0)
        fuse_reply_err(req, -rc);
    else
        fuse_reply_statfs(req, &st);
}

void operations_reply_value(fuse_req_t req, int rc, const void *value, size_t size, size_t room)
{
    if (rc != 0)
        fuse_reply_err(req, -rc);
    else if (room == 0)
        fuse_reply_xattr(req, size);
    else if (size > room)
        fuse_reply_err(req, ERANGE);
    else
        fuse_reply_buf(req, value, size);
}

static void do_getxattr(fuse_req_t req, fuse_ino_t node, const char *name, size_t room)
{
    size_t size = 0;
    _cleanup_free_ char *value = NULL;
    operations_waits(req);
    int rc = vfs_getxattr(operations_vfs(req), node, name, &value, &size);
    interrupts_end();
    operations_reply_value(req, rc, value, size, room);
}

static void do_listxattr(fuse_req_t req, fuse_ino_t node, size_t room)
{
    size_t size = 0;
    _cleanup_free_ char *names = NULL;
    operations_waits(req);
    int rc = vfs_listxattr(operations_vfs(req), node, &names, &size);
    interrupts_end();
    operations_reply_value(req, rc, names, size, room);
}

/* ---- directories ---- */

static void do_opendir(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    struct vfs_directory *d;
    int rc = vfs_opendir(operations_vfs(req), node, &d);
    if (rc != 0) {
        fuse_reply_err(req, -rc);
        return;
    }
    fi->fh = vfs_directory_id(d);
    if (fuse_reply_open(req, fi) == -ENOENT)
        vfs_closedir(d);
}

static void do_releasedir(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    (void)node;
    struct vfs_directory *d = vfs_directory_of(operations_vfs(req), fi->fh);
    if (d != NULL) /* else the kernel has sent this again */
        vfs_closedir(d);
    fuse_reply_err(req, 0);
}

static bool page_take(void *context, const struct vfs_entry *e)
{
    struct page *p = context;
    /* Node 0: no attributes; the kernel looks the name up when they are wanted. */
    struct fuse_entry_param entry = {
        .attr = {.st_ino = e->inode, .st_mode = e->is_directory ? S_IFDIR : S_IFREG}};
    if (!page_has_room(p, e->name))
        return false;
    uint64_t node = p->plus && e->is_known && e->next > 2 ? vfs_adopt(e) : 0;
    if (node != 0)
        entry = operations_entry(p->req, node);
    page_put(p, e->name, &entry, e->next);
    return true;
}

static void reply_page(fuse_req_t req, size_t room, off_t offset, struct fuse_file_info *fi,
                       bool plus)
{
    struct page p = page_new(req, room, plus);
    struct vfs_directory *d = vfs_directory_of(operations_vfs(req), fi->fh);
    operations_waits(req);
    int rc = d != NULL ? vfs_readdir(d, (uint64_t)offset, page_take, &p) : -EIO;
    interrupts_end();
    if (rc != 0 && p.size > 0) /* the program hears it next, and does not wait for it again */
        vfs_readdir_failed(d, rc);
    page_reply(&p, rc);
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

static int open_file(fuse_req_t req, fuse_ino_t node, struct vfs_file **f)
{
    struct vfs *v = operations_vfs(req);
    *f = link_is_resent() ? vfs_file_again(v, link_request()) : NULL;
    if (*f != NULL)
        return 0;
    operations_waits(req);
    int rc = vfs_openfile(v, node, link_request(), f);
    interrupts_end();
    return rc;
}

static void do_open(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    struct vfs_file *f;
    if ((fi->flags & O_ACCMODE) != O_RDONLY) {
        change_open(req, node, fi);
        return;
    }
    int rc = open_file(req, node, &f);
    if (rc == 0 && (rc = -fault_errno("mount.opened")) != 0)
        vfs_closefile(f);
    if (rc != 0) {
        fuse_reply_err(req, -rc);
        return;
    }
    const int backing = vfs_file_backing(f);
    fi->fh = vfs_file_id(f);
    fi->keep_cache = backing == 0; /* a node is one version */
    fi->noflush = 1;               /* nothing is to be stored */
    if (backing > 0)
        link_pass(backing);
    fi->direct_io = vfs_is_draft(operations_vfs(req), node);
    if (fuse_reply_open(req, fi) == -ENOENT)
        vfs_closefile(f);
}

static void do_release(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    (void)node;
    struct vfs_file *f = vfs_file_of(operations_vfs(req), fi->fh);
    if (f != NULL) /* else the kernel has sent this again */
        vfs_closefile(f);
    fuse_reply_err(req, 0);
}

bool operations_interrupted(void *req)
{
    return fuse_req_interrupted(req) != 0 || fuse_session_exited(of(req)->fuse) != 0;
}

static void do_read(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
                    struct fuse_file_info *fi)
{
    (void)node;
    const struct vfs_read r = {
        .offset = (uint64_t)offset,
        .size = size,
        .interrupted = operations_interrupted,
        .context = req,
    };
    struct vfs_file *f = vfs_file_of(operations_vfs(req), fi->fh);
    char *data = malloc(size);
    ssize_t n = f == NULL ? -EIO : data == NULL ? -ENOMEM : vfs_read(f, &r, data);
    if (n < 0)
        fuse_reply_err(req, (int)-n);
    else
        fuse_reply_buf(req, data, (size_t)n);
    free(data);
}

const struct fuse_lowlevel_ops operations_table = {
    .init = do_init,
    .lookup = do_lookup,
    .forget = do_forget,
    .forget_multi = do_forget_multi,
    .getattr = do_getattr,
    .statfs = do_statfs,
    .getxattr = do_getxattr,
    .listxattr = do_listxattr,
    .opendir = do_opendir,
    .readdir = do_readdir,
    .readdirplus = do_readdirplus,
    .releasedir = do_releasedir,
    .open = do_open,
    .read = do_read,
    .release = do_release,
    .ioctl = control_ioctl,
    .mkdir = change_mkdir,
    .unlink = change_unlink,
    .rmdir = change_rmdir,
    .rename = change_rename,
    .symlink = change_symlink,
    .link = change_link,
    .mknod = change_mknod,
    .setattr = change_setattr,
    .create = change_create,
    .write = change_write,
    .flush = change_flush,
    .fsync = change_fsync,
};
