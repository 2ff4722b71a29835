#include "plog/plfs/plfs_error.h"

#include <errno.h>
#include <string.h>

static const int errnos[] = {
    [PLFS_EPERM] = EPERM,
    [PLFS_ENOENT] = ENOENT,
    [PLFS_ESRCH] = ESRCH,
    [PLFS_EINTR] = EINTR,
    [PLFS_EIO] = EIO,
    [PLFS_ENXIO] = ENXIO,
    [PLFS_E2BIG] = E2BIG,
    [PLFS_EBADF] = EBADF,
    [PLFS_EAGAIN] = EAGAIN,
    [PLFS_ENOMEM] = ENOMEM,
    [PLFS_EACCES] = EACCES,
    [PLFS_EFAULT] = EFAULT,
    [PLFS_EBUSY] = EBUSY,
    [PLFS_EEXIST] = EEXIST,
    [PLFS_EXDEV] = EXDEV,
    [PLFS_ENODEV] = ENODEV,
    [PLFS_ENOTDIR] = ENOTDIR,
    [PLFS_EISDIR] = EISDIR,
    [PLFS_EINVAL] = EINVAL,
    [PLFS_ENFILE] = ENFILE,
    [PLFS_EMFILE] = EMFILE,
    [PLFS_ENOTTY] = ENOTTY,
    [PLFS_ETXTBSY] = ETXTBSY,
    [PLFS_EFBIG] = EFBIG,
    [PLFS_ENOSPC] = ENOSPC,
    [PLFS_ESPIPE] = ESPIPE,
    [PLFS_EROFS] = EROFS,
    [PLFS_EMLINK] = EMLINK,
    [PLFS_EPIPE] = EPIPE,
    [PLFS_ERANGE] = ERANGE,
    [PLFS_EDEADLK] = EDEADLK,
    [PLFS_ENAMETOOLONG] = ENAMETOOLONG,
    [PLFS_ENOSYS] = ENOSYS,
    [PLFS_ENOTEMPTY] = ENOTEMPTY,
    [PLFS_ELOOP] = ELOOP,
    [PLFS_ENODATA] = ENODATA,
    [PLFS_EOVERFLOW] = EOVERFLOW,
    [PLFS_EBADFD] = EBADFD,
    [PLFS_EPROTOTYPE] = EPROTOTYPE,
    [PLFS_ENOTSUP] = ENOTSUP,
    [PLFS_EEOF] = 0,
};
enum { ERRNOS = sizeof errnos / sizeof errnos[0] };

plfs_error_t errno_to_plfs_error(int errcode)
{
    if (errcode == 0)
        return PLFS_SUCCESS;
    for (int i = 1; i < ERRNOS; i++) {
        if (errnos[i] == errcode)
            return (plfs_error_t)i;
    }
    return PLFS_EIO;
}

int plfs_error_to_errno(plfs_error_t error)
{
    if (error == PLFS_SUCCESS)
        return 0;
    return (unsigned)error < ERRNOS && errnos[error] != 0 ? errnos[error] : EIO;
}

const char *strplfserr(plfs_error_t error)
{
    if (error == PLFS_SUCCESS)
        return "Success";
    return error == PLFS_EEOF ? "End of file" : strerrordesc_np(plfs_error_to_errno(error));
}
