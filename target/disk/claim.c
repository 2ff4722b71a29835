#include "target/disk/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/fault.h"

int claim_admit(const struct space_limits *l, const char *path, int fd, uint64_t size,
                struct error *err)
{
    struct statvfs v;
    int errnum = fault_errno_at("disk.room", path);
    if (errnum != 0)
        return error_errno(err, errnum, "find room on '%s'", path);
    if (fstatvfs(fd, &v) != 0)
        return error_errno(err, errno, "capacity of '%s'", path);
    const struct space s = {.total = (uint64_t)v.f_blocks * v.f_frsize,
                            .available = (uint64_t)v.f_bavail * v.f_frsize};
    return space_admit(l, path, &s, size, err);
}

int claim_allocate(const char *path, int fd, uint64_t from, uint64_t to, struct error *err)
{
    if (fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)(to - from)) == 0 ||
        errno == EOPNOTSUPP || errno == ENOSYS)
        return 0;
    return error_errno(err, errno, "reserve %llu bytes on '%s'", (unsigned long long)(to - from),
                       path);
}

int claim_take(const struct space_limits *l, const char *path, int fd, uint64_t from, uint64_t to,
               struct error *err)
{
    int code = claim_admit(l, path, fd, to - from, err);
    return code != 0 ? code : claim_allocate(path, fd, from, to, err);
}

int claim_end(const char *path, int fd, uint64_t size, struct error *err)
{
    if (ftruncate(fd, (off_t)size) == 0)
        return 0;
    return error_errno(err, errno, "give room back on '%s'", path);
}
