#include "io/lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "common/cleanup.h"

static int lock_taken(const char *path, int fd, struct error *err)
{
    char owner[24] = {0};
    ssize_t n = pread(fd, owner, sizeof owner - 1, 0);
    if (n > 0)
        owner[strcspn(owner, "\n")] = '\0';
    return error_set(err, E_EXISTS, "'%s' is locked: process %s uses this directory", path,
                     n > 0 ? owner : "(unknown)");
}

int lock_file_take(const char *path, int *fd, struct error *err)
{
    _cleanup_close_ int lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (lock < 0 && errno == ELOOP)
        return error_set(err, E_IO, "'%s' is a symbolic link, and must be a file: remove it", path);
    if (lock < 0)
        return error_errno(err, errno, "open '%s'", path);
    if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK)
            return lock_taken(path, lock, err);
        return error_errno(err, errno, "lock '%s'", path);
    }
    char text[24];
    int len = snprintf(text, sizeof text, "%d\n", (int)getpid());
    if (ftruncate(lock, 0) != 0 || pwrite(lock, text, (size_t)len, 0) != len)
        return error_errno(err, errno, "write '%s'", path);
    *fd = steal_fd(&lock);
    return 0;
}
