#include "io/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fault.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/rng.h"

static int file_open(const char *path, int flags, mode_t mode, int *fd, struct error *err)
{
    int errnum = fault_errno("disk.open");
    *fd = -1;
    if (errnum == 0) {
        *fd = open(path, flags | O_CLOEXEC, mode);
        if (*fd >= 0)
            return 0;
        errnum = errno;
    }
    if (errnum == ENOENT)
        return error_set(err, E_NOT_FOUND, "open '%s': no such file", path);
    return error_errno(err, errnum, "open '%s'", path);
}

int file_write_all(int fd, const void *data, size_t len, struct error *err)
{
    const char *at = data;
    while (len > 0) {
        int errnum = fault_errno("disk.write");
        ssize_t n = errnum == 0 ? write(fd, at, len) : -1;
        if (n < 0) {
            if (errnum == 0)
                errnum = errno;
            if (errnum == EINTR)
                continue;
            return error_errno(err, errnum, "write %zu bytes", len);
        }
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

int file_pwrite_all(int fd, const void *data, size_t len, uint64_t offset, struct error *err)
{
    const char *at = data;
    while (len > 0) {
        int errnum = fault_errno("disk.write");
        ssize_t n = errnum == 0 ? pwrite(fd, at, len, (off_t)offset) : -1;
        if (n < 0) {
            if (errnum == 0)
                errnum = errno;
            if (errnum == EINTR)
                continue;
            return error_errno(err, errnum, "write %zu bytes at %llu", len,
                               (unsigned long long)offset);
        }
        at += n;
        len -= (size_t)n;
        offset += (uint64_t)n;
    }
    return 0;
}

int file_pread_full(int fd, void *out, size_t len, uint64_t offset, struct error *err)
{
    char *at = out;
    while (len > 0) {
        int errnum = fault_errno("disk.read");
        ssize_t n = errnum == 0 ? pread(fd, at, len, (off_t)offset) : -1;
        if (n < 0) {
            if (errnum == 0)
                errnum = errno;
            if (errnum == EINTR)
                continue;
            return error_errno(err, errnum, "read %zu bytes at %llu", len,
                               (unsigned long long)offset);
        }
        if (n == 0)
            return error_set(err, E_LENGTH, "the file ends at %llu, %zu bytes before it should",
                             (unsigned long long)offset, len);
        at += n;
        len -= (size_t)n;
        offset += (uint64_t)n;
    }
    return 0;
}

int file_checksum(const char *path, enum checksum_type type,
                  void (*on_piece)(void *ctx, size_t bytes), void *ctx, struct checksum_value *out,
                  struct error *err)
{
    enum { PIECE = 256 * 1024 };
    _cleanup_close_ int fd = -1;
    _cleanup_free_ char *piece = xmalloc(PIECE);
    _cleanup_(checksum_freep)
    struct checksum *sum = checksum_new(type);
    int rc = file_open(path, O_RDONLY, 0, &fd, err);
    for (ssize_t n = 1; rc == 0 && n != 0;) {
        int errnum = fault_errno("disk.read");
        n = errnum == 0 ? read(fd, piece, PIECE) : -1;
        if (n > 0)
            checksum_update(sum, piece, (size_t)n);
        if (n > 0 && on_piece != NULL)
            on_piece(ctx, (size_t)n);
        if (n < 0 && (errnum = errnum != 0 ? errnum : errno) != EINTR)
            rc = error_errno(err, errnum, "read '%s'", path);
    }
    if (rc == 0)
        checksum_final(sum, out);
    return rc;
}

static int file_datasync(int fd, const char *path, struct error *err)
{
    int errnum = fault_errno("disk.sync");
    if (errnum == 0 && !fault_skips("sync.file") && fdatasync(fd) != 0)
        errnum = errno;
    return errnum == 0 ? 0 : error_errno(err, errnum, "sync '%s'", path);
}

int file_sync(int fd, const char *point)
{
    int errnum = fault_errno("disk.sync");
    if (errnum != 0 || fault_skips(point))
        return errnum;
    return fsync(fd) == 0 ? 0 : errno;
}

/* For file systems without O_TMPFILE.  A crash in between leaves a name. */
static int open_unlinked(const char *dir, int *fd, struct error *err)
{
    _cleanup_free_ char *path = xprintf("%s/work-XXXXXX", dir);
    *fd = mkostemp(path, O_CLOEXEC);
    if (*fd < 0)
        return error_errno(err, errno, "make a work file in '%s'", dir);
    if (unlink(path) == 0)
        return 0;
    int errnum = errno;
    close(steal_fd(fd));
    return error_errno(err, errnum, "unlink '%s'", path);
}

int file_open_unnamed(const char *dir, int *fd, struct error *err)
{
    *fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (*fd >= 0)
        return 0;
    if (errno == EOPNOTSUPP || errno == EISDIR)
        return open_unlinked(dir, fd, err);
    return error_errno(err, errno, "open a work file in '%s'", dir);
}

int file_fsync_dir(const char *path, struct error *err)
{
    _cleanup_close_ int fd = -1;
    int rc = file_open(path, O_RDONLY | O_DIRECTORY, 0, &fd, err);
    if (rc != 0)
        return rc;
    int errnum = file_sync(fd, "sync.directory");
    return errnum == 0 ? 0 : error_errno(err, errnum, "sync directory '%s'", path);
}

/* "/a/b" -> "/a", "b" -> ".", "/b" -> "/". */
static char *file_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return xstrdup(".");
    return xstrndup(path, slash == path ? 1 : (size_t)(slash - path));
}

int file_fsync_parent(const char *path, struct error *err)
{
    _cleanup_free_ char *parent = file_parent(path);
    return file_fsync_dir(parent, err);
}

static int file_write_new(const char *path, const void *data, size_t len, mode_t mode,
                          struct error *err)
{
    _cleanup_close_ int fd = -1;
    int rc = file_open(path, O_WRONLY | O_CREAT | O_EXCL, mode, &fd, err);
    if (rc != 0)
        return rc;
    if ((rc = file_write_all(fd, data, len, err)) != 0)
        return error_wrap(err, "'%s'", path), rc;
    return file_datasync(fd, path, err);
}

static int file_rename(const char *from, const char *to, struct error *err)
{
    int errnum = fault_errno("disk.rename");
    if (errnum == 0 && rename(from, to) != 0)
        errnum = errno;
    return errnum == 0 ? 0 : error_errno(err, errnum, "rename '%s' to '%s'", from, to);
}

int file_replace(const char *path, const void *data, size_t len, mode_t mode, struct error *err)
{
    char unique[sizeof ".tmp-" + 10];
    random_id(".tmp-", unique);
    _cleanup_free_ char *temporary = xprintf("%s%s", path, unique);
    int rc = file_write_new(temporary, data, len, mode, err);
    if (rc == 0)
        rc = file_rename(temporary, path, err);
    if (rc != 0) {
        unlink(temporary);
        return rc;
    }
    return file_fsync_parent(path, err);
}

void file_restrict(const char *path, mode_t mode)
{
    struct stat st;
    if (stat(path, &st) != 0 || (st.st_mode & 07777 & ~mode) == 0)
        return;
    if (chmod(path, st.st_mode & mode) != 0)
        log_warn("others may read what they should not", lstr("path", path), li64("errno", errno));
}

int file_read_all(const char *path, size_t max, struct buf *out, struct error *err)
{
    _cleanup_close_ int fd = -1;
    int rc = file_open(path, O_RDONLY, 0, &fd, err);
    if (rc != 0)
        return rc;
    size_t before = out->len;
    for (;;) {
        /* One byte more than allowed, so that a file that is too large shows. */
        size_t want = max - (out->len - before) + 1;
        if (want > 64 * 1024)
            want = 64 * 1024;
        buf_reserve(out, want);
        ssize_t n = read(fd, out->data + out->len, want);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, errno, "read '%s'", path);
        out->len += (size_t)n;
        out->data[out->len] = '\0';
        if (n == 0)
            return 0;
        if (out->len - before > max)
            return error_set(err, E_TOO_LARGE, "'%s' is larger than %zu bytes", path, max);
    }
}

static int file_mkdir(const char *path, mode_t mode, void (*made)(void *ctx, const char *path),
                      void *ctx, struct error *err)
{
    if (mkdir(path, mode) == 0) {
        if (made != NULL)
            made(ctx, path);
        return file_fsync_parent(path, err);
    }
    if (errno != EEXIST)
        return error_errno(err, errno, "make directory '%s'", path);
    struct stat st;
    if (stat(path, &st) != 0)
        return error_errno(err, errno, "look at '%s'", path);
    return S_ISDIR(st.st_mode) ? 0 : error_errno(err, ENOTDIR, "make directory '%s'", path);
}

int file_mkdirs_each(const char *path, mode_t mode, void (*made)(void *ctx, const char *path),
                     void *ctx, struct error *err)
{
    _cleanup_free_ char *prefix = xstrdup(path);
    for (char *at = prefix + strspn(prefix, "/"); *at != '\0';) {
        at += strcspn(at, "/");
        char after = *at;
        *at = '\0';
        int rc = file_mkdir(prefix, mode, made, ctx, err);
        if (rc != 0)
            return rc;
        *at = after;
        at += strspn(at, "/");
    }
    return 0;
}

int file_mkdirs(const char *path, mode_t mode, struct error *err)
{
    return file_mkdirs_each(path, mode, NULL, NULL, err);
}

static bool file_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Removes `name` in the directory `dirfd`, whatever it is, without following a link.  Somebody else
 * may be removing it, too. */
static int file_remove_at(int dirfd, const char *name)
{
    if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return errno;
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : errno;
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        int errnum = errno;
        close(fd);
        return errnum;
    }
    int errnum = 0;
    for (struct dirent *entry; errnum == 0 && (entry = readdir(dir)) != NULL;) {
        if (!file_dots(entry->d_name))
            errnum = file_remove_at(fd, entry->d_name);
    }
    closedir(dir);
    if (errnum != 0)
        return errnum;
    return unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : errno;
}

int file_remove_tree(const char *path, struct error *err)
{
    int errnum = file_remove_at(AT_FDCWD, path);
    return errnum == 0 ? 0 : error_errno(err, errnum, "remove '%s'", path);
}
