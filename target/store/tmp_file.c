#include "target/store/tmp_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/fault.h"

enum { FILE_MODE = 0640 };

int object_tmp_create(struct mountpath *mp, char name[static MOUNTPATH_TMP_NAME], int *fd,
                      struct error *err)
{
    mountpath_tmp_name(mp, name);
    int errnum = fault_errno("disk.open");
    *fd = errnum == 0 ? openat(mp->tmp_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE)
                      : -1;
    if (*fd < 0 && errnum == 0)
        errnum = errno;
    if (errnum == 0)
        return 0;
    return mountpath_failed(mp,
                            error_errno(err, errnum, "create '%s/.dfc/tmp/%s'", mp->path, name));
}

int object_tmp_link(struct mountpath *mp, const char *path, char name[static MOUNTPATH_TMP_NAME],
                    int *fd, struct error *err)
{
    mountpath_tmp_name(mp, name);
    int errnum = fault_errno("disk.open");
    *fd = -1;
    if (errnum == 0 && linkat(AT_FDCWD, path, mp->tmp_fd, name, 0) != 0)
        errnum = errno;
    if (errnum == 0 && (*fd = openat(mp->tmp_fd, name, O_RDWR | O_CLOEXEC)) < 0) {
        errnum = errno;
        unlinkat(mp->tmp_fd, name, 0);
    }
    if (errnum == 0)
        return 0;
    return mountpath_failed(
        mp, error_errno(err, errnum, "link '%s' to '%s/.dfc/tmp/%s'", path, mp->path, name));
}

int object_set_attr(const struct mountpath *mp, int fd, const struct attr *a, struct error *err)
{
    unsigned char raw[ATTR_ENCODED_MAX];
    size_t len;
    int code = attr_encode(a, raw, &len, err);
    if (code != 0)
        return code;
    int errnum = fault_errno("disk.xattr");
    if (errnum == 0 && fsetxattr(fd, ATTR_XATTR, raw, len, 0) != 0)
        errnum = errno;
    if (errnum == 0)
        return 0;
    return error_errno(err, errnum, "write the attribute of '%s' on '%s'", a->name, mp->path);
}
