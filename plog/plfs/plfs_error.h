/* Results of the calls of plfs.h: PLFS_SUCCESS (0), or an error with the name of an errno.  Names
 * and order are those of PLFS 2.5. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    PLFS_SUCCESS,
    PLFS_EPERM,
    PLFS_ENOENT,
    PLFS_ESRCH,
    PLFS_EINTR,
    PLFS_EIO,
    PLFS_ENXIO,
    PLFS_E2BIG,
    PLFS_EBADF,
    PLFS_EAGAIN,
    PLFS_ENOMEM,
    PLFS_EACCES,
    PLFS_EFAULT,
    PLFS_EBUSY,
    PLFS_EEXIST,
    PLFS_EXDEV,
    PLFS_ENODEV,
    PLFS_ENOTDIR,
    PLFS_EISDIR,
    PLFS_EINVAL,
    PLFS_ENFILE,
    PLFS_EMFILE,
    PLFS_ENOTTY,
    PLFS_ETXTBSY,
    PLFS_EFBIG,
    PLFS_ENOSPC,
    PLFS_ESPIPE,
    PLFS_EROFS,
    PLFS_EMLINK,
    PLFS_EPIPE,
    PLFS_ERANGE,
    PLFS_EDEADLK,
    PLFS_ENAMETOOLONG,
    PLFS_ENOSYS,
    PLFS_ENOTEMPTY,
    PLFS_ELOOP,
    PLFS_ENODATA,
    PLFS_EOVERFLOW,
    PLFS_EBADFD,
    PLFS_EPROTOTYPE,
    PLFS_ENOTSUP,
    PLFS_EEOF,
    PLFS_SIGSEGV,
    PLFS_SIGBUS,
    PLFS_TBD = 300
} plfs_error_t;

#define PLFS_EWOULDBLOCK PLFS_EAGAIN

#define PLFS_DFC_API __attribute__((visibility("default")))

/* An errno that has no error here is PLFS_EIO; an error that has no errno is EIO. */
PLFS_DFC_API plfs_error_t errno_to_plfs_error(int errcode);
PLFS_DFC_API int plfs_error_to_errno(plfs_error_t error);
PLFS_DFC_API const char *strplfserr(plfs_error_t error);

#ifdef __cplusplus
}
#endif
