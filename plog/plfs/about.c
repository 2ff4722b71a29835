/* Calls that say what the library is, and those that it does not have. */
#include <time.h>

#include "plog/plfs/plfs.h"
#include "plog/plfs/shim.h"

const char *plfs_version(void)
{
    return "dfc " DFC_VERSION;
}

const char *plfs_tag(void)
{
    return "2.5";
}

const char *plfs_buildtime(void)
{
    return ""; /* builds are reproducible */
}

double plfs_wtime(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

plfs_error_t plfs_flush_writes(const char *path)
{
    _cleanup_plfs_path_ struct plfs_path p;
    return shim_path(path, true, &p);
}

plfs_error_t plfs_invalidate_read_cache(const char *path)
{
    return plfs_flush_writes(path);
}

static plfs_error_t lacks(const char *what)
{
    return shim_refuse(PLFS_ENOSYS, "plogs have no %s", what);
}

plfs_error_t plfs_link(const char *path, const char *to)
{
    (void)path;
    (void)to;
    return lacks("hard links");
}

plfs_error_t plfs_symlink(const char *path, const char *to)
{
    (void)path;
    (void)to;
    return lacks("symbolic links");
}

plfs_error_t plfs_readlink(const char *path, char *to, size_t size, int *bytes)
{
    (void)path;
    (void)to;
    (void)size;
    *bytes = 0;
    return lacks("symbolic links");
}

plfs_error_t plfs_statvfs(const char *path, struct statvfs *out)
{
    (void)path;
    (void)out;
    return lacks("room that could be told");
}

plfs_error_t plfs_getxattr(Plfs_fd *fd, void *value, const char *key, size_t size)
{
    (void)fd;
    (void)value;
    (void)key;
    (void)size;
    return lacks("extended attributes");
}

plfs_error_t plfs_setxattr(Plfs_fd *fd, const void *value, const char *key, size_t size)
{
    (void)fd;
    (void)value;
    (void)key;
    (void)size;
    return lacks("extended attributes");
}

plfs_error_t plfs_expand_path(const char *path, char **physical)
{
    (void)path;
    *physical = NULL;
    return lacks("physical path");
}
