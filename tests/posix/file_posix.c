#include "tests/posix/file_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"

static int fail(const char *what, const char *path)
{
    return file_fail(what, path, strerror(errno));
}

static int posix_open(const char *path, int flags, struct file *f)
{
    const int fd = open(path, flags | O_CLOEXEC, 0644);
    if (fd < 0)
        return fail("open", path);
    *f = (struct file){.fd = fd, .path = xstrdup(path)};
    return 0;
}

static int posix_write(struct file *f, const void *data, size_t size, uint64_t offset)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n =
            pwrite(f->fd, (const char *)data + done, size - done, (off_t)(offset + done));
        if (n <= 0)
            return fail("pwrite", f->path);
        done += (size_t)n;
    }
    return 0;
}

static int posix_read(struct file *f, void *to, size_t size, uint64_t offset, size_t *got)
{
    for (*got = 0; *got < size;) {
        const ssize_t n = pread(f->fd, (char *)to + *got, size - *got, (off_t)(offset + *got));
        if (n < 0)
            return fail("pread", f->path);
        if (n == 0)
            break;
        *got += (size_t)n;
    }
    return 0;
}

static int posix_truncate(struct file *f, uint64_t length)
{
    return ftruncate(f->fd, (off_t)length) == 0 ? 0 : fail("ftruncate", f->path);
}

static int posix_size(struct file *f, uint64_t *bytes)
{
    struct stat st;
    if (fstat(f->fd, &st) != 0)
        return fail("fstat", f->path);
    *bytes = (uint64_t)st.st_size;
    return 0;
}

static int posix_sync(struct file *f)
{
    return fsync(f->fd) == 0 ? 0 : fail("fsync", f->path);
}

static int posix_close(struct file *f)
{
    const int rc = close(f->fd) == 0 ? 0 : fail("close", f->path);
    free(f->path);
    return rc;
}

static int posix_stat(const char *path, uint64_t *bytes)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return fail("stat", path);
    *bytes = (uint64_t)st.st_size;
    return 0;
}

static int posix_cut(const char *path, uint64_t length)
{
    return truncate(path, (off_t)length) == 0 ? 0 : fail("truncate", path);
}

static int posix_rename(const char *path, const char *new_path)
{
    return rename(path, new_path) == 0 ? 0 : fail("rename", path);
}

static int posix_remove(const char *path)
{
    return unlink(path) == 0 ? 0 : fail("unlink", path);
}

const struct file_kind file_posix = {
    .name = "posix",
    .is_shared = true,
    .open = posix_open,
    .write = posix_write,
    .read = posix_read,
    .truncate = posix_truncate,
    .size = posix_size,
    .sync = posix_sync,
    .close = posix_close,
    .stat = posix_stat,
    .cut = posix_cut,
    .rename = posix_rename,
    .remove = posix_remove,
};
