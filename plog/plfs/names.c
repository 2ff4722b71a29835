/* Files by their paths. */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plog/plfs/directory.h"
#include "plog/plfs/file.h"
#include "plog/plfs/plfs.h"
#include "plog/plfs/shim.h"

enum { BLOCK = 512 };

/* --- what there is ---------------------------------------------------------------------------- */

static struct timespec time_of(uint64_t ms)
{
    return (struct timespec){.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000 * 1000000)};
}

static void stat_of_plog(const struct dfc_plog_glance *s, struct stat *st)
{
    *st = (struct stat){.st_mode = S_IFREG | s->mode, .st_nlink = 1, .st_blksize = 1 << 20};
    st->st_uid = s->uid;
    st->st_gid = s->gid;
    st->st_size = (off_t)s->size;
    st->st_blocks = (blkcnt_t)((s->stored + BLOCK - 1) / BLOCK);
    st->st_mtim = st->st_ctim = st->st_atim = time_of(s->modified_ms);
}

static plfs_error_t stat_flat(struct dfc_client *client, const struct plfs_path *p, struct stat *st)
{
    struct dfc_object_info *info;
    struct dfc_error err;
    if (dfc_head(client, p->bucket, p->key, &info, &err) != DFC_OK)
        return shim_fail(&err);
    *st = (struct stat){.st_mode = S_IFREG | 0444, .st_nlink = 1, .st_blksize = 1 << 20};
    st->st_uid = geteuid();
    st->st_gid = getegid();
    st->st_size = (off_t)info->size;
    st->st_blocks = (blkcnt_t)((info->size + BLOCK - 1) / BLOCK);
    st->st_mtim = st->st_ctim = st->st_atim = time_of((uint64_t)info->modified_ms);
    dfc_object_info_free(info);
    return PLFS_SUCCESS;
}

static plfs_error_t stat_directory(struct dfc_client *client, const struct plfs_path *p,
                                   struct stat *st)
{
    bool is_there, is_empty;
    const plfs_error_t error = shim_directory(client, p, &is_there, &is_empty);
    if (error != PLFS_SUCCESS)
        return error;
    if (!is_there)
        return shim_refuse(PLFS_ENOENT, "'%s' does not exist", p->key);
    *st = (struct stat){.st_mode = S_IFDIR | 0755, .st_nlink = 2, .st_blksize = 1 << 20};
    st->st_uid = geteuid();
    st->st_gid = getegid();
    return PLFS_SUCCESS;
}

/* *type as plfs_get_filetype() has it. */
static plfs_error_t stat_path(const struct plfs_path *p, struct stat *st, plfs_filetype *type)
{
    struct dfc_client *client;
    struct dfc_plog_glance s;
    struct dfc_error err;
    *type = PFT_UNKNOWN;
    const plfs_error_t error = shim_client(&client);
    if (error != PLFS_SUCCESS)
        return error;
    if (p->key[0] == '\0')
        return stat_directory(client, p, st);
    const int rc = dfc_plog_glance(client, p->bucket, p->key, &s, &err);
    if (rc == DFC_NOT_FOUND)
        return stat_directory(client, p, st);
    if (rc != DFC_OK && strcmp(err.code, "invalid_argument") == 0) {
        *type = FLAT_FILE;
        return stat_flat(client, p, st);
    }
    if (rc != DFC_OK)
        return shim_fail(&err);
    *type = CONTAINER;
    stat_of_plog(&s, st);
    return PLFS_SUCCESS;
}

static plfs_error_t stat_text(const char *path, struct stat *st, plfs_filetype *type)
{
    _cleanup_plfs_path_ struct plfs_path p;
    const plfs_error_t error = shim_path(path, true, &p);
    return error == PLFS_SUCCESS ? stat_path(&p, st, type) : error;
}

plfs_error_t plfs_getattr(Plfs_fd *fd, const char *path, struct stat *st, int size_only)
{
    struct dfc_plog_glance s;
    plfs_filetype type;
    bool is_plog;
    (void)size_only;
    if (fd == NULL)
        return stat_text(path, st, &type);
    const plfs_error_t error = shim_fd_stat(fd, &s, &is_plog);
    if (error != PLFS_SUCCESS)
        return error;
    if (!is_plog)
        return stat_path(shim_fd_path(fd), st, &type);
    stat_of_plog(&s, st);
    return PLFS_SUCCESS;
}

plfs_error_t plfs_mode(const char *path, mode_t *mode)
{
    struct stat st;
    plfs_filetype type;
    const plfs_error_t error = stat_text(path, &st, &type);
    *mode = error == PLFS_SUCCESS ? st.st_mode : 0;
    return error;
}

plfs_error_t plfs_access(const char *path, int mask)
{
    struct stat st;
    plfs_filetype type;
    const plfs_error_t error = stat_text(path, &st, &type);
    if (error != PLFS_SUCCESS || mask == F_OK)
        return error;
    const unsigned bits = st.st_uid == geteuid()   ? st.st_mode >> 6
                          : st.st_gid == getegid() ? st.st_mode >> 3
                                                   : st.st_mode;
    const unsigned any = st.st_mode | st.st_mode >> 3 | st.st_mode >> 6;
    const unsigned has = geteuid() == 0 ? R_OK | W_OK | (any & X_OK) : bits;
    if (((unsigned)mask & ~has & (R_OK | W_OK | X_OK)) != 0)
        return shim_refuse(PLFS_EACCES, "the mode of '%s' is %04o", path, st.st_mode & 07777U);
    return PLFS_SUCCESS;
}

plfs_filetype plfs_get_filetype(const char *path)
{
    struct stat st;
    plfs_filetype type;
    return stat_text(path, &st, &type) == PLFS_SUCCESS ? type : PFT_UNKNOWN;
}

int is_plfs_path(const char *path)
{
    _cleanup_plfs_path_ struct plfs_path p;
    return shim_path(path, true, &p) == PLFS_SUCCESS;
}

/* --- what changes ----------------------------------------------------------------------------- */

static plfs_error_t open_and_close(const char *path, int flags, mode_t mode, const uint64_t *length)
{
    _cleanup_plfs_path_ struct plfs_path p;
    struct dfc_client *client;
    struct dfc_plog *plog;
    struct dfc_error err;
    plfs_error_t error = shim_file(path, &p, &client);
    if (error == PLFS_SUCCESS)
        error = shim_open(client, &p, flags, mode, &plog, &err);
    if (error != PLFS_SUCCESS)
        return error;
    int rc = length != NULL ? dfc_plog_truncate(plog, *length, &err) : DFC_OK;
    if (rc == DFC_OK)
        rc = dfc_plog_close(plog, &err);
    if (rc == DFC_OK)
        return PLFS_SUCCESS;
    dfc_plog_drop(plog);
    return shim_fail(&err);
}

plfs_error_t plfs_create(const char *path, mode_t mode, int flags, pid_t pid)
{
    (void)pid;
    return open_and_close(path, O_CREAT | (flags & (O_EXCL | O_TRUNC)), mode, NULL);
}

plfs_error_t plfs_trunc(Plfs_fd *fd, const char *path, off_t length, int open_file)
{
    const uint64_t to = (uint64_t)length;
    (void)open_file;
    if (length < 0)
        return shim_refuse(PLFS_EINVAL, "the length is below 0");
    return fd != NULL ? shim_fd_truncate(fd, to) : open_and_close(path, 0, 0, &to);
}

plfs_error_t plfs_unlink(const char *path)
{
    _cleanup_plfs_path_ struct plfs_path p;
    struct dfc_client *client;
    struct dfc_error err;
    const plfs_error_t error = shim_file(path, &p, &client);
    if (error != PLFS_SUCCESS)
        return error;
    int rc = dfc_plog_unlink(client, p.bucket, p.key, &err);
    if (rc != DFC_OK && strcmp(err.code, "invalid_argument") == 0)
        rc = dfc_delete(client, p.bucket, p.key, &err);
    return rc == DFC_OK ? PLFS_SUCCESS : shim_fail(&err);
}
