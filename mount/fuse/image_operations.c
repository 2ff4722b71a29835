/* The calls of a mounted image.  Nothing changes: names, also missing ones, and attributes are kept
 * by the kernel for ever, and no file or directory is opened (ENOSYS says so once for all). */
#include "mount/fuse/operations.h"
#include "mount/fuse/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "mount/image/image.h"

#define FOR_EVER (365.0 * 24 * 3600)
#define KERNEL_READAHEAD (1u << 20)

static struct image *image_of(fuse_req_t req)
{
    return ((struct operations *)fuse_req_userdata(req))->image;
}

static void image_init(void *context, struct fuse_conn_info *conn)
{
    (void)context;
    conn->max_readahead = KERNEL_READAHEAD;
    conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
    conn->want |= conn->capable & FUSE_CAP_CACHE_SYMLINKS;
}

static void do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param e = {.attr_timeout = FOR_EVER, .entry_timeout = FOR_EVER};
    int rc = image_lookup(image_of(req), parent, name, &e.ino, &e.attr);
    if (rc != 0 && rc != -ENOENT) /* of ENOENT node 0 says that it stays so */
        fuse_reply_err(req, -rc);
    else
        fuse_reply_entry(req, &e);
}

static void do_forget(fuse_req_t req, fuse_ino_t node, uint64_t uses)
{
    (void)node;
    (void)uses;
    fuse_reply_none(req);
}

static void do_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
    (void)count;
    (void)forgets;
    fuse_reply_none(req);
}

static void do_getattr(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    struct stat st;
    (void)fi;
    int rc = image_getattr(image_of(req), node, &st);
    if (rc != 0)
        fuse_reply_err(req, -rc);
    else
        fuse_reply_attr(req, &st, FOR_EVER);
}

static void do_readlink(fuse_req_t req, fuse_ino_t node)
{
    _cleanup_free_ char *target = NULL;
    int rc = image_readlink(image_of(req), node, &target);
    if (rc != 0)
        fuse_reply_err(req, -rc);
    else
        fuse_reply_readlink(req, target);
}

static void do_statfs(fuse_req_t req, fuse_ino_t node)
{
    struct statvfs st;
    (void)node;
    image_statfs(image_of(req), &st);
    fuse_reply_statfs(req, &st);
}

static void do_getxattr(fuse_req_t req, fuse_ino_t node, const char *name, size_t room)
{
    _cleanup_free_ char *value = NULL;
    int rc = image_getxattr(image_of(req), node, name, &value);
    operations_reply_value(req, rc, value, value != NULL ? strlen(value) : 0, room);
}

static void do_listxattr(fuse_req_t req, fuse_ino_t node, size_t room)
{
    _cleanup_free_ char *names = NULL;
    size_t size = 0;
    int rc = image_listxattr(image_of(req), node, &names, &size);
    operations_reply_value(req, rc, names, size, room);
}

/* --- directories ------------------------------------------------------------------------------ */

/* Of "." and ".." no node is told. */
static bool put_entry(void *context, const struct image_entry *e)
{
    struct page *p = context;
    const bool is_dot = strcmp(e->name, ".") == 0 || strcmp(e->name, "..") == 0;
    const struct fuse_entry_param entry = {.ino = is_dot ? 0 : e->node,
                                           .attr = e->st,
                                           .attr_timeout = FOR_EVER,
                                           .entry_timeout = FOR_EVER};
    if (!page_has_room(p, e->name))
        return false;
    page_put(p, e->name, &entry, e->next);
    return true;
}

static void reply_page(fuse_req_t req, fuse_ino_t node, size_t room, off_t offset, bool plus)
{
    struct page p = page_new(req, room, plus);
    page_reply(&p, image_readdir(image_of(req), node, (uint64_t)offset, put_entry, &p));
}

static void do_readdir(fuse_req_t req, fuse_ino_t node, size_t room, off_t offset,
                       struct fuse_file_info *fi)
{
    (void)fi;
    reply_page(req, node, room, offset, false);
}

static void do_readdirplus(fuse_req_t req, fuse_ino_t node, size_t room, off_t offset,
                           struct fuse_file_info *fi)
{
    (void)fi;
    reply_page(req, node, room, offset, true);
}

/* --- files ------------------------------------------------------------------------------------ */

static void do_open(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    (void)node;
    (void)fi;
    fuse_reply_err(req, ENOSYS);
}

static void do_read(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
                    struct fuse_file_info *fi)
{
    (void)fi;
    const struct image_read r = {.offset = (uint64_t)offset,
                                 .size = size,
                                 .interrupted = operations_interrupted,
                                 .context = req};
    char *data = malloc(size);
    ssize_t n = data == NULL ? -ENOMEM : image_read(image_of(req), node, &r, data);
    if (n < 0)
        fuse_reply_err(req, (int)-n);
    else
        fuse_reply_buf(req, data, (size_t)n);
    free(data);
}

const struct fuse_lowlevel_ops image_operations_table = {
    .init = image_init,
    .lookup = do_lookup,
    .forget = do_forget,
    .forget_multi = do_forget_multi,
    .getattr = do_getattr,
    .readlink = do_readlink,
    .statfs = do_statfs,
    .getxattr = do_getxattr,
    .listxattr = do_listxattr,
    .opendir = do_open,
    .readdir = do_readdir,
    .readdirplus = do_readdirplus,
    .open = do_open,
    .read = do_read,
};
