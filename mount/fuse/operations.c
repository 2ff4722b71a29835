#include "mount/fuse/operations.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "mount/vfs/vfs.h"

#define KERNEL_READAHEAD (1u << 20)

static struct operations *of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

static struct vfs *vfs_of(fuse_req_t req)
{
    return of(req)->vfs;
}

static void do_init(void *context, struct fuse_conn_info *conn)
{
    (void)context;
    conn->max_readahead = KERNEL_READAHEAD;
    /* Splicing a reply that is in memory costs more than copying it. */
    conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
}

/* ---- names and attributes ---- */

static struct fuse_entry_param entry_of(const struct operations *o, uint64_t node)
{
    struct fuse_entry_param e = {
        .ino = node,
        .attr_timeout = o->ttl_s,
        .entry_timeout = o->ttl_s,
    };
    vfs_getattr(o->vfs, node, &e.attr);
    return e;
}

static void do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    uint64_t node;
    int rc = vfs_lookup(vfs_of(req), parent, name, &node);
    if (rc != 0) {
        fuse_reply_err(req, -rc);
        return;
    }
    const struct fuse_entry_param e = entry_of(of(req), node);
    if (fuse_reply_entry(req, &e) == -ENOENT) /* the caller has gone: the kernel counts nothing */
        vfs_forget(vfs_of(req), node, 1);
}

static void do_forget(fuse_req_t req, fuse_ino_t node, uint64_t uses)
{
    vfs_forget(vfs_of(req), node, uses);
    fuse_reply_none(req);
}

static void do_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
    for (size_t i = 0; i < count; i++)
        vfs_forget(vfs_of(req), forgets[i].ino, forgets[i].nlookup);
    fuse_reply_none(req);
}

static void do_getattr(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    struct stat st;
    (void)fi;
    vfs_getattr(vfs_of(req), node, &st);
    fuse_reply_attr(req, &st, of(req)->ttl_s);
}

static void do_statfs(fuse_req_t req, fuse_ino_t node)
{
    struct statvfs st;
    (void)node;
    int rc = vfs_statfs(vfs_of(req), &st);
    if (rc != 0)
        fuse_reply_err(req, -rc);
    else
        fuse_reply_statfs(req, &st);
}

/* room 0: the caller asks for the size. */
static void reply_xattr(fuse_req_t req, int rc, const char *value, size_t size, size_t room)
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
    int rc = vfs_getxattr(vfs_of(req), node, name, &value, &size);
    reply_xattr(req, rc, value, size, room);
}

static void do_listxattr(fuse_req_t req, fuse_ino_t node, size_t room)
{
    size_t size = 0;
    _cleanup_free_ char *names = NULL;
    int rc = vfs_listxattr(vfs_of(req), node, &names, &size);
    reply_xattr(req, rc, names, size, room);
}

/* ---- directories ---- */

static void do_opendir(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    struct vfs_directory *d;
    int rc = vfs_opendir(vfs_of(req), node, &d);
    if (rc != 0) {
        fuse_reply_err(req, -rc);
        return;
    }
    fi->fh = (uint64_t)(uintptr_t)d;
    if (fuse_reply_open(req, fi) == -ENOENT)
        vfs_closedir(d);
}

static void do_releasedir(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    (void)node;
    vfs_closedir((struct vfs_directory *)(uintptr_t)fi->fh);
    fuse_reply_err(req, 0);
}

/* The reply to one readdir, as it fills. */
struct page {
    fuse_req_t req;
    bool plus; /* with attributes */
    char *data;
    size_t size, room;
};

static bool page_put(void *context, const struct vfs_entry *e)
{
    struct page *p = context;
    char *to = p->data + p->size;
    size_t left = p->room - p->size;
    const struct stat st = {
        .st_ino = e->inode,
        .st_mode = e->is_directory ? S_IFDIR : S_IFREG,
    };
    size_t needed = p->plus ? fuse_add_direntry_plus(p->req, NULL, 0, e->name, NULL, 0)
                            : fuse_add_direntry(p->req, NULL, 0, e->name, NULL, 0);
    if (needed > left)
        return false;
    if (p->plus) {
        /* Node 0: no attributes; the kernel looks the name up when they are wanted. */
        struct fuse_entry_param entry = {.attr = st};
        if (e->is_known && e->next > 2)
            entry = entry_of(of(p->req), vfs_adopt(e));
        fuse_add_direntry_plus(p->req, to, left, e->name, &entry, (off_t)e->next);
    } else {
        fuse_add_direntry(p->req, to, left, e->name, &st, (off_t)e->next);
    }
    p->size += needed;
    return true;
}

static void reply_page(fuse_req_t req, size_t room, off_t offset, struct fuse_file_info *fi,
                       bool plus)
{
    struct page p = {.req = req, .plus = plus, .data = xmalloc(room), .room = room};
    int rc = vfs_readdir((struct vfs_directory *)(uintptr_t)fi->fh, (uint64_t)offset, page_put, &p);
    /* What was found before an error is told now, the error by the next call. */
    if (rc != 0 && p.size == 0)
        fuse_reply_err(req, -rc);
    else
        fuse_reply_buf(req, p.data, p.size);
    free(p.data);
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

static void do_open(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    struct vfs_file *f;
    if ((fi->flags & O_ACCMODE) != O_RDONLY) {
        fuse_reply_err(req, EROFS);
        return;
    }
    int rc = vfs_openfile(vfs_of(req), node, &f);
    if (rc != 0) {
        fuse_reply_err(req, -rc);
        return;
    }
    fi->fh = (uint64_t)(uintptr_t)f;
    fi->keep_cache = 1; /* a node is one version */
    if (fuse_reply_open(req, fi) == -ENOENT)
        vfs_closefile(f);
}

static void do_release(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    (void)node;
    vfs_closefile((struct vfs_file *)(uintptr_t)fi->fh);
    fuse_reply_err(req, 0);
}

static bool is_interrupted(void *req)
{
    return fuse_req_interrupted(req) != 0;
}

static void do_read(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
                    struct fuse_file_info *fi)
{
    (void)node;
    const struct vfs_read r = {
        .offset = (uint64_t)offset,
        .size = size,
        .interrupted = is_interrupted,
        .context = req,
    };
    char *data = malloc(size);
    ssize_t n = data != NULL ? vfs_read((struct vfs_file *)(uintptr_t)fi->fh, &r, data) : -ENOMEM;
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
};
