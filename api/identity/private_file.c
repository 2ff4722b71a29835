#include "api/identity/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/failure.h"
#include "common/cleanup.h"
#include "common/mem.h"

enum { FILE_MAX = 1 << 20 };

/* ---- reading ---- */

/* Of the file that was opened, so that nobody can put another one in its place. */
static int check_file(int fd, const char *path, struct dfc_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return failure_errno(err, errno, "look at '%s'", path);
    if (!S_ISREG(st.st_mode))
        return failure_set(err, DFC_LOCAL, E_INVALID, "'%s' is not a file", path);
    if (st.st_uid != geteuid())
        return failure_set(err, DFC_LOCAL, E_INVALID, "'%s' belongs to another user", path);
    if ((st.st_mode & 077) != 0)
        return failure_set(err, DFC_LOCAL, E_INVALID,
                           "the mode of '%s' is %03o, and it has secrets: chmod 600", path,
                           (unsigned)(st.st_mode & 0777));
    return DFC_OK;
}

static int read_text(int fd, const char *path, struct buf *out, struct dfc_error *err)
{
    buf_reserve(out, FILE_MAX + 1);
    while (out->len <= FILE_MAX) {
        ssize_t n = read(fd, out->data + out->len, FILE_MAX + 1 - out->len);
        if (n < 0 && errno != EINTR)
            return failure_errno(err, errno, "read '%s'", path);
        if (n == 0)
            return DFC_OK;
        out->len += n > 0 ? (size_t)n : 0;
    }
    return failure_set(err, DFC_LOCAL, E_TOO_LARGE, "'%s' is larger than %d bytes", path, FILE_MAX);
}

int private_file_read(const char *path, struct buf *out, struct dfc_error *err)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return failure_set(err, DFC_NOT_FOUND, E_NOT_FOUND, "there is no '%s'", path);
    if (fd < 0)
        return failure_errno(err, errno, "open '%s'", path);
    int rc = check_file(fd, path, err);
    return rc == DFC_OK ? read_text(fd, path, out, err) : rc;
}

void private_text_wipe(struct buf *text)
{
    if (text->data != NULL)
        OPENSSL_cleanse(text->data, text->len);
    buf_done(text);
}

/* ---- writing ---- */

static int make_directories(const char *path, struct dfc_error *err)
{
    _cleanup_free_ char *part = xstrdup(path);
    for (char *slash = strchr(part + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST)
            return failure_errno(err, errno, "make '%s'", part);
        *slash = '/';
    }
    return DFC_OK;
}

static int write_all(int fd, const char *text, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = write(fd, text + done, len - done);
        if (n < 0 && errno != EINTR)
            return -1;
        done += n > 0 ? (size_t)n : 0;
    }
    return fsync(fd);
}

int private_file_write(const char *path, const char *text, struct dfc_error *err)
{
    int rc = make_directories(path, err);
    if (rc != DFC_OK)
        return rc;
    _cleanup_free_ char *temporary = xprintf("%s.XXXXXX", path);
    int fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
    if (fd < 0)
        return failure_errno(err, errno, "make '%s'", temporary);
    bool written = write_all(fd, text, strlen(text)) == 0;
    written &= close(fd) == 0;
    if (written && rename(temporary, path) == 0)
        return DFC_OK;
    rc = failure_errno(err, errno, "write '%s'", path);
    unlink(temporary);
    return rc;
}
