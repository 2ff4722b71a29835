#include "io/direct.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include "common/fault.h"
#include "io/file.h"

static bool set_flag(int fd, bool on)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

void direct_begin(struct direct *d, int fd, bool wanted)
{
    *d = (struct direct){.fd = fd, .on = wanted && set_flag(fd, true)};
}

void direct_end(struct direct *d)
{
    if (d->on)
        (void)set_flag(d->fd, false); /* only where it could be set */
    d->on = false;
}

/* How many bytes of whole blocks were taken, of which the file system may leave some, or all. */
static int write_blocks(const struct direct *d, const void *data, size_t len, size_t *taken,
                        struct error *err)
{
    int errnum;
    *taken = 0;
    do {
        errnum = fault_errno("disk.write");
        ssize_t n = errnum == 0 ? write(d->fd, data, len) : -1;
        if (n >= 0)
            *taken = (size_t)n;
        else if (errnum == 0)
            errnum = errno;
    } while (errnum == EINTR);
    if (errnum == 0 || errnum == EINVAL || errnum == EOPNOTSUPP)
        return 0;
    return error_errno(err, errnum, "write %zu bytes", len);
}

int direct_write(struct direct *d, const void *data, size_t len, struct error *err)
{
    bool aligned = (uintptr_t)data % DIRECT_BLOCK == 0;
    size_t blocks = d->on && aligned ? len - len % DIRECT_BLOCK : 0;
    size_t taken = 0;
    int rc = blocks > 0 ? write_blocks(d, data, blocks, &taken, err) : 0;
    if (rc != 0 || taken == len)
        return rc;
    direct_end(d);
    return file_write_all(d->fd, (const char *)data + taken, len - taken, err);
}

/* How many bytes the file system has copied, or shared; what is left is written.  A disk that is
 * full, or fails, says so to that write, too. */
static size_t copy_blocks(int to, int from, uint64_t offset, size_t len)
{
    off_t at = (off_t)offset;
    size_t done = 0;
    ssize_t n = 1;
    while (done < len && n > 0) {
        n = fault_errno("disk.copy") == 0 ? copy_file_range(from, &at, to, NULL, len - done, 0) : 0;
        done += n > 0 ? (size_t)n : 0;
    }
    return done;
}

int direct_copy(struct direct *d, int from, uint64_t offset, const void *data, size_t len,
                struct error *err)
{
    direct_end(d);
    int errnum = fault_errno("disk.write");
    if (errnum != 0)
        return error_errno(err, errnum, "write %zu bytes", len);
    const size_t done = copy_blocks(d->fd, from, offset, len);
    return done < len ? file_write_all(d->fd, (const char *)data + done, len - done, err) : 0;
}
