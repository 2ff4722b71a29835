#include "tests/posix/file_kind.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/mem.h"
#include "plog/plfs/plfs.h"

static int result(plfs_error_t error, const char *what, const char *path)
{
    return error == PLFS_SUCCESS ? 0 : file_fail(what, path, plfs_dfc_error());
}

static int shim_open(const char *path, int flags, struct file *f)
{
    Plfs_fd *fd = NULL;
    if (result(plfs_open(&fd, path, flags, getpid(), 0644, NULL), "plfs_open", path) != 0)
        return -1;
    *f = (struct file){.fd = -1, .handle = fd, .path = xstrdup(path)};
    return 0;
}

static int shim_write(struct file *f, const void *data, size_t size, uint64_t offset)
{
    ssize_t n = 0;
    if (result(plfs_write(f->handle, data, size, (off_t)offset, getpid(), &n), "plfs_write",
               f->path) != 0)
        return -1;
    return n == (ssize_t)size ? 0 : file_fail("plfs_write", f->path, "fewer bytes were written");
}

static int shim_read(struct file *f, void *to, size_t size, uint64_t offset, size_t *got)
{
    ssize_t n = 0;
    if (result(plfs_read(f->handle, to, size, (off_t)offset, &n), "plfs_read", f->path) != 0)
        return -1;
    *got = (size_t)n;
    return 0;
}

static int shim_truncate(struct file *f, uint64_t length)
{
    return result(plfs_trunc(f->handle, f->path, (off_t)length, 1), "plfs_trunc", f->path);
}

static int size_of(Plfs_fd *fd, const char *path, uint64_t *bytes)
{
    struct stat st;
    if (result(plfs_getattr(fd, path, &st, 1), "plfs_getattr", path) != 0)
        return -1;
    *bytes = (uint64_t)st.st_size;
    return 0;
}

static int shim_size(struct file *f, uint64_t *bytes)
{
    return size_of(f->handle, f->path, bytes);
}

static int shim_sync(struct file *f)
{
    return result(plfs_sync(f->handle), "plfs_sync", f->path);
}

static int shim_close(struct file *f)
{
    const int rc =
        result(plfs_close(f->handle, getpid(), getuid(), 0, NULL, NULL), "plfs_close", f->path);
    free(f->path);
    return rc;
}

static int shim_stat(const char *path, uint64_t *bytes)
{
    return size_of(NULL, path, bytes);
}

static int shim_cut(const char *path, uint64_t length)
{
    return result(plfs_trunc(NULL, path, (off_t)length, 0), "plfs_trunc", path);
}

static int shim_rename(const char *path, const char *new_path)
{
    return result(plfs_rename(path, new_path), "plfs_rename", path);
}

static int shim_remove(const char *path)
{
    return result(plfs_unlink(path), "plfs_unlink", path);
}

static int shim_merge(const char *path)
{
    return result(plfs_flatten_index(NULL, path), "plfs_flatten_index", path);
}

const struct file_kind file_plfs = {
    .name = "plfs",
    .open = shim_open,
    .write = shim_write,
    .read = shim_read,
    .truncate = shim_truncate,
    .size = shim_size,
    .sync = shim_sync,
    .close = shim_close,
    .stat = shim_stat,
    .cut = shim_cut,
    .rename = shim_rename,
    .remove = shim_remove,
    .merge = shim_merge,
};
