#include "common/auth/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"

enum { FILE_MAX = 64 * 1024 };

int secret_file_check_mode(uid_t owner, mode_t mode, uid_t self, struct error *err)
{
    if (owner != self && owner != 0 && self != 0)
        return error_set(err, E_INVALID,
                         "it belongs to user %u, who is neither this process's nor root",
                         (unsigned)owner);
    const bool is_lent = owner == 0 && self != 0;
    mode_t too_wide = is_lent ? 0037 : 0077;
    if ((mode & too_wide) != 0)
        return error_set(err, E_INVALID, "its mode is %03o: others may use it (chmod %s)",
                         (unsigned)(mode & 0777), is_lent ? "440" : "600");
    return 0;
}

/* Of the file that was opened, so that nobody can put another one in its place. */
static int check_file(int fd, struct error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return error_errno(err, errno, "look at it");
    if (!S_ISREG(st.st_mode))
        return error_set(err, E_INVALID, "it is not a file");
    return secret_file_check_mode(st.st_uid, st.st_mode, geteuid(), err);
}

static int read_file(int fd, struct buf *out, struct error *err)
{
    buf_reserve(out, FILE_MAX + 1);
    while (out->len <= FILE_MAX) {
        ssize_t n = read(fd, out->data + out->len, FILE_MAX + 1 - out->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, errno, "read it");
        out->len += (size_t)n;
        out->data[out->len] = '\0';
        if (n == 0)
            return 0;
    }
    return error_set(err, E_INVALID, "it is larger than %d bytes", FILE_MAX);
}

int secret_file_read(const char *path, struct buf *out, struct error *err)
{
    _cleanup_close_ int fd =
        open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO may have no writer */
    if (fd < 0)
        return error_errno(err, errno, "open it");
    int code = check_file(fd, err);
    return code != 0 ? code : read_file(fd, out, err);
}
