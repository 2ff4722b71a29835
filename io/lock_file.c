#include "io/lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"

static int lock_taken(const char *path, int fd, struct error *err)
{
    char owner[24] = {0};
    ssize_t n = pread(fd, owner, sizeof owner - 1, 0);
    if (n > 0)
        owner[strcspn(owner, "\n")] = '\0';
    return error_set(err, E_EXISTS, "'%s' is locked: process %s uses this directory", path,
                     n > 0 ? owner : "(unknown)");
}

/* It is for people: a full disk keeps nobody from the lock. */
static void write_owner(int fd)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%d\n", (int)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)len, 0) != len)
        log_warn("a lock does not say who has it", lstr("error", strerror(errno)));
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
    write_owner(lock);
    *fd = steal_fd(&lock);
    return 0;
}
