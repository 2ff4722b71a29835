/* Open files.  A plog is a handle of dfc_plog.h; another object is read by ranges of the version
 * that it had when it was opened. */
#include "plog/plfs/file.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"

struct Plfs_fd {
    struct dfc_plog *plog;        /* NULL: it is another object, … */
    struct dfc_object_info *flat; /* … and this its version */
    struct plfs_path path;
    int access; /* O_RDONLY, O_WRONLY, O_RDWR */
    size_t opens;
    atomic_size_t written;
};

/* --- open ------------------------------------------------------------------------------------- */

static void fd_free(struct Plfs_fd *fd)
{
    dfc_plog_drop(fd->plog);
    dfc_object_info_free(fd->flat);
    plfs_path_done(&fd->path);
    free(fd);
}

plfs_error_t shim_open(struct dfc_client *client, const struct plfs_path *p, int flags, mode_t mode,
                       struct dfc_plog **plog, struct dfc_error *err)
{
    const struct dfc_plog_options options = {
        .flags = DFC_PLOG_WRITE | ((flags & O_CREAT) != 0 ? DFC_PLOG_CREATE : 0U) |
                 ((flags & O_EXCL) != 0 ? DFC_PLOG_EXCLUSIVE : 0U) |
                 ((flags & O_TRUNC) != 0 ? DFC_PLOG_TRUNCATE : 0U),
        .mode = mode & 07777,
        .uid = geteuid(),
        .gid = getegid()};
    if (dfc_plog_open(client, p->bucket, p->key, &options, plog, err) == DFC_OK)
        return PLFS_SUCCESS;
    if (strcmp(err->code, "invalid_argument") == 0)
        return shim_refuse(PLFS_ENOTSUP,
                           "'%s' is an object and no plog: it can be read, not written", p->key);
    return shim_fail(err);
}

/* What O_CREAT and O_TRUNC do, for a handle that only reads. */
static plfs_error_t prepare(struct dfc_client *client, const struct plfs_path *p, int flags,
                            mode_t mode)
{
    struct dfc_plog *plog;
    struct dfc_error err;
    const plfs_error_t error = shim_open(client, p, flags, mode, &plog, &err);
    if (error != PLFS_SUCCESS)
        return error;
    if (dfc_plog_close(plog, &err) == DFC_OK)
        return PLFS_SUCCESS;
    dfc_plog_drop(plog);
    return shim_fail(&err);
}

static plfs_error_t open_to_read(struct dfc_client *client, struct Plfs_fd *fd)
{
    const struct dfc_plog_options options = {.flags = 0};
    struct dfc_error err, why;
    if (dfc_plog_open(client, fd->path.bucket, fd->path.key, &options, &fd->plog, &err) == DFC_OK)
        return PLFS_SUCCESS;
    if (strcmp(err.code, "invalid_argument") == 0 &&
        dfc_head(client, fd->path.bucket, fd->path.key, &fd->flat, &why) == DFC_OK)
        return PLFS_SUCCESS;
    return shim_fail(&err);
}

static plfs_error_t open_new(struct Plfs_fd *fd, int flags, mode_t mode)
{
    struct dfc_client *client;
    struct dfc_error err;
    const int makes = flags & (O_CREAT | O_TRUNC);
    plfs_error_t error = shim_client(&client);
    if (error != PLFS_SUCCESS)
        return error;
    if (fd->access != O_RDONLY)
        return shim_open(client, &fd->path, flags, mode, &fd->plog, &err);
    if (makes != 0)
        error = prepare(client, &fd->path, flags, mode);
    return error == PLFS_SUCCESS ? open_to_read(client, fd) : error;
}

static plfs_error_t open_again(struct Plfs_fd *fd, const struct plfs_path *p, int flags)
{
    if (strcmp(fd->path.bucket, p->bucket) != 0 || strcmp(fd->path.key, p->key) != 0 ||
        fd->access != (flags & O_ACCMODE))
        return shim_refuse(PLFS_EINVAL, "'%s' is another file, or is open in another way", p->key);
    fd->opens++;
    return PLFS_SUCCESS;
}

plfs_error_t plfs_open(Plfs_fd **out, const char *path, int flags, pid_t pid, mode_t mode,
                       Plfs_open_opt *options)
{
    struct plfs_path p;
    (void)pid;
    (void)options;
    plfs_error_t error = shim_path(path, false, &p);
    if (error == PLFS_SUCCESS && *out != NULL)
        error = open_again(*out, &p, flags);
    if (error != PLFS_SUCCESS || *out != NULL) {
        plfs_path_done(&p);
        return error;
    }
    struct Plfs_fd *fd = xcalloc(1, sizeof *fd);
    fd->path = p;
    fd->access = flags & O_ACCMODE;
    fd->opens = 1;
    error = open_new(fd, flags, mode);
    if (error == PLFS_SUCCESS)
        *out = fd;
    else
        fd_free(fd);
    return error;
}

/* --- reading and writing ---------------------------------------------------------------------- */

static int read_flat(const struct Plfs_fd *fd, struct dfc_client *client, char *to, size_t size,
                     uint64_t offset, size_t *got, struct dfc_error *err)
{
    const uint64_t left = offset < fd->flat->size ? fd->flat->size - offset : 0;
    const size_t want = size < left ? size : (size_t)left;
    const struct dfc_get_options options = {.offset = (int64_t)offset,
                                            .length = want,
                                            .if_match = fd->flat->etag,
                                            .memory_limit = want + 1};
    void *data;
    *got = 0;
    if (want == 0)
        return DFC_OK;
    const int rc =
        dfc_get_memory(client, fd->path.bucket, fd->path.key, &options, &data, got, NULL, err);
    if (rc == DFC_OK) {
        *got = *got < size ? *got : size;
        memcpy(to, data, *got);
        dfc_free(data);
    }
    return rc;
}

plfs_error_t plfs_read(Plfs_fd *fd, char *to, size_t size, off_t offset, ssize_t *bytes_read)
{
    struct dfc_client *client;
    struct dfc_error err;
    size_t got = 0;
    *bytes_read = 0;
    if (fd->access == O_WRONLY)
        return shim_refuse(PLFS_EBADF, "'%s' is open for writing alone", fd->path.key);
    if (offset < 0)
        return shim_refuse(PLFS_EINVAL, "the offset is below 0");
    const plfs_error_t error = shim_client(&client);
    if (error != PLFS_SUCCESS)
        return error;
    const int rc = fd->plog != NULL
                       ? dfc_plog_read(fd->plog, to, size, (uint64_t)offset, &got, &err)
                       : read_flat(fd, client, to, size, (uint64_t)offset, &got, &err);
    *bytes_read = (ssize_t)got;
    return rc == DFC_OK ? PLFS_SUCCESS : shim_fail(&err);
}

static plfs_error_t need_write(const struct Plfs_fd *fd)
{
    if (fd->access != O_RDONLY)
        return PLFS_SUCCESS;
    return shim_refuse(PLFS_EBADF, "'%s' is open for reading", fd->path.key);
}

plfs_error_t plfs_write(Plfs_fd *fd, const char *data, size_t size, off_t offset, pid_t pid,
                        ssize_t *bytes_written)
{
    struct dfc_error err;
    (void)pid;
    *bytes_written = 0;
    const plfs_error_t error = need_write(fd);
    if (error != PLFS_SUCCESS)
        return error;
    if (offset < 0)
        return shim_refuse(PLFS_EINVAL, "the offset is below 0");
    if (dfc_plog_write(fd->plog, data, size, (uint64_t)offset, &err) != DFC_OK)
        return shim_fail(&err);
    atomic_fetch_add(&fd->written, size);
    *bytes_written = (ssize_t)size;
    return PLFS_SUCCESS;
}

plfs_error_t plfs_sync(Plfs_fd *fd)
{
    struct dfc_error err;
    if (fd->plog == NULL)
        return PLFS_SUCCESS;
    if (fd->access != O_RDONLY && dfc_plog_sync(fd->plog, &err) != DFC_OK)
        return shim_fail(&err);
    dfc_plog_renew(fd->plog);
    return PLFS_SUCCESS;
}

plfs_error_t plfs_close(Plfs_fd *fd, pid_t pid, uid_t uid, int flags, Plfs_close_opt *options,
                        int *left)
{
    struct dfc_error err;
    (void)pid;
    (void)uid;
    (void)flags;
    (void)options;
    if (fd->opens == 1 && fd->plog != NULL) {
        if (dfc_plog_close(fd->plog, &err) != DFC_OK)
            return shim_fail(&err);
        fd->plog = NULL;
    }
    fd->opens--;
    if (left != NULL)
        *left = (int)fd->opens;
    if (fd->opens == 0)
        fd_free(fd);
    return PLFS_SUCCESS;
}

plfs_error_t plfs_query(Plfs_fd *fd, size_t *writers, size_t *readers, size_t *bytes_written,
                        int *lazy_stat)
{
    if (writers != NULL)
        *writers = fd->access != O_RDONLY ? fd->opens : 0;
    if (readers != NULL)
        *readers = fd->access != O_WRONLY ? fd->opens : 0;
    if (bytes_written != NULL)
        *bytes_written = atomic_load(&fd->written);
    if (lazy_stat != NULL)
        *lazy_stat = 0;
    return PLFS_SUCCESS;
}

/* --- what names.c does with a file that is open ----------------------------------------------- */

plfs_error_t shim_fd_stat(Plfs_fd *fd, struct dfc_plog_glance *plog, bool *is_plog)
{
    struct dfc_error err;
    *is_plog = fd->plog != NULL;
    if (fd->plog == NULL)
        return PLFS_SUCCESS;
    return dfc_plog_look(fd->plog, plog, &err) == DFC_OK ? PLFS_SUCCESS : shim_fail(&err);
}

plfs_error_t shim_fd_truncate(Plfs_fd *fd, uint64_t length)
{
    struct dfc_error err;
    const plfs_error_t error = need_write(fd);
    if (error != PLFS_SUCCESS)
        return error;
    return dfc_plog_truncate(fd->plog, length, &err) == DFC_OK ? PLFS_SUCCESS : shim_fail(&err);
}

const struct plfs_path *shim_fd_path(const Plfs_fd *fd)
{
    return &fd->path;
}
