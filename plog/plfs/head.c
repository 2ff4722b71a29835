/* What is kept in the head of a plog, or done with it: mode, owner, time, name, merged index. */
#include <string.h>
#include <unistd.h>

#include "plog/client/dfc_plog_parts.h"
#include "plog/merge.h"
#include "plog/plfs/file.h"

static plfs_error_t change_file(const char *path, const struct dfc_plog_change *change)
{
    _cleanup_plfs_path_ struct plfs_path p;
    struct dfc_client *client;
    struct dfc_error err;
    const plfs_error_t error = shim_file(path, &p, &client);
    if (error != PLFS_SUCCESS)
        return error;
    return dfc_plog_change(client, p.bucket, p.key, change, &err) == DFC_OK ? PLFS_SUCCESS
                                                                            : shim_fail(&err);
}

plfs_error_t plfs_chmod(const char *path, mode_t mode)
{
    return change_file(path, &(struct dfc_plog_change){.sets_mode = true, .mode = mode});
}

plfs_error_t plfs_chown(const char *path, uid_t uid, gid_t gid)
{
    return change_file(path, &(struct dfc_plog_change){.sets_uid = uid != (uid_t)-1,
                                                       .sets_gid = gid != (gid_t)-1,
                                                       .uid = uid,
                                                       .gid = gid});
}

plfs_error_t plfs_utime(const char *path, struct utimbuf *times)
{
    if (times != NULL && times->modtime < 0)
        return shim_refuse(PLFS_EINVAL, "the time is before 1970");
    if (times != NULL && (uint64_t)times->modtime > DFC_PLOG_MODIFIED_MAX / 1000)
        return shim_refuse(PLFS_EINVAL, "the time, %lld s, is beyond the year 2262",
                           (long long)times->modtime);
    const uint64_t ms =
        times != NULL ? (uint64_t)times->modtime * 1000 : (uint64_t)(plfs_wtime() * 1000);
    return change_file(path, &(struct dfc_plog_change){.sets_modified = true, .modified_ms = ms});
}

plfs_error_t plfs_rename(const char *from, const char *to)
{
    _cleanup_plfs_path_ struct plfs_path a = {.key = NULL};
    _cleanup_plfs_path_ struct plfs_path b = {.key = NULL};
    struct dfc_client *client;
    struct dfc_error err;
    plfs_error_t error = shim_file(from, &a, &client);
    if (error == PLFS_SUCCESS)
        error = shim_path(to, false, &b);
    if (error != PLFS_SUCCESS)
        return error;
    if (strcmp(a.bucket, b.bucket) != 0)
        return shim_refuse(PLFS_EXDEV, "'%s' is in another bucket than '%s'", to, from);
    if (strcmp(a.key, b.key) == 0)
        return plfs_access(from, F_OK);
    return dfc_plog_rename(client, a.bucket, a.key, b.key, &err) == DFC_OK ? PLFS_SUCCESS
                                                                           : shim_fail(&err);
}

plfs_error_t plfs_flatten_index(Plfs_fd *fd, const char *path)
{
    _cleanup_plfs_path_ struct plfs_path p = {.key = NULL};
    struct plog_watch watch = {.count = 0};
    enum plog_merge_result result;
    struct dfc_client *client;
    struct error e = ERROR_INIT;
    struct dfc_error err;
    plfs_error_t error = fd != NULL ? plfs_sync(fd) : PLFS_SUCCESS;
    if (error == PLFS_SUCCESS)
        error = fd != NULL ? shim_client(&client) : shim_file(path, &p, &client);
    if (error != PLFS_SUCCESS)
        return error;
    const struct plfs_path *of = fd != NULL ? shim_fd_path(fd) : &p;
    struct bucket_store b = {.client = client, .bucket = of->bucket, .parallel = PLOG_PARALLEL};
    const struct plog_store st = bucket_store_of(&b);
    const int code = plog_merge(&st, of->key, &watch, 0, UINT64_MAX, &result, &e);
    plog_watch_done(&watch);
    if (code == 0 && result == PLOG_MERGED_BUSY)
        return shim_refuse(PLFS_EBUSY, "'%s' is open for writing: its last close merges the index",
                           of->key);
    return plog_result(code, &e, &err) == DFC_OK ? PLFS_SUCCESS : shim_fail(&err);
}
