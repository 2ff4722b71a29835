#include "target/disk/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/fault.h"

/* `errnum`: of the fault point. */
static int space_of(const char *path, int fd, int errnum, struct space *out, struct error *err)
{
    struct statvfs v;
    if (errnum != 0)
        return error_errno(err, errnum, "find room on '%s'", path);
    if (fstatvfs(fd, &v) != 0)
        return error_errno(err, errno, "capacity of '%s'", path);
    *out = (struct space){.total = (uint64_t)v.f_blocks * v.f_frsize,
                          .available = (uint64_t)v.f_bavail * v.f_frsize};
    return 0;
}

int claim_admit(const struct space_limits *l, const char *path, int fd, uint64_t size,
                struct error *err)
{
    struct space s;
    int code = space_of(path, fd, fault_errno_at("disk.room", path), &s, err);
    return code != 0 ? code : space_admit(l, path, &s, size, err);
}

int claim_admit_known(const struct space_limits *l, const char *path, int fd, uint64_t size,
                      struct error *err)
{
    struct space s;
    int code = space_of(path, fd, fault_errno_at("disk.kept", path), &s, err);
    return code != 0 ? code : space_admit_known(l, path, &s, size, err);
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
