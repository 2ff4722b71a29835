#include "mount/volfs/dump_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "common/mem.h"

enum { WINDOW = 256 << 10 };

struct file {
    gzFile gz;
    bool (*stops)(void *context);
    void *context;
};

static FILE *open_file(int fd, const char *mode, const char *gz_mode, const struct file *how,
                       const cookie_io_functions_t *functions)
{
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    struct file *f = xmalloc(sizeof *f);
    *f = *how;
    f->gz = own >= 0 ? gzdopen(own, gz_mode) : NULL;
    if (f->gz == NULL) {
        free(f);
        if (own >= 0)
            close(own);
        return NULL;
    }
    gzbuffer(f->gz, WINDOW);
    return fopencookie(f, mode, *functions);
}

static int end_file(void *cookie)
{
    struct file *f = cookie;
    errno = 0;
    int result = gzclose(f->gz);
    free(f);
    if (result == Z_OK)
        return 0;
    errno = errno != 0 ? errno : EIO;
    return -1;
}

/* ---- write ---- */

static ssize_t write_bytes(void *cookie, const char *data, size_t size)
{
    struct file *f = cookie;
    if (f->stops != NULL && f->stops(f->context)) {
        errno = ECANCELED;
        return 0;
    }
    errno = 0;
    int written = gzwrite(f->gz, data, (unsigned)size);
    if (written <= 0 && errno == 0)
        errno = EIO;
    return written > 0 ? written : 0;
}

FILE *dump_file_write(int fd, bool (*stops)(void *context), void *context)
{
    static const cookie_io_functions_t functions = {.write = write_bytes, .close = end_file};
    const struct file how = {.stops = stops, .context = context};
    return open_file(fd, "w", "wb1", &how, &functions);
}

/* ---- read ---- */

static ssize_t read_bytes(void *cookie, char *to, size_t room)
{
    const struct file *f = cookie;
    errno = 0;
    int got = gzread(f->gz, to, (unsigned)room);
    if (got < 0 && errno == 0)
        errno = EIO; /* damaged */
    return got;
}

/* rewind() alone. */
static int seek_bytes(void *cookie, off64_t *at, int whence)
{
    const struct file *f = cookie;
    if (whence != SEEK_SET || *at != 0 || gzrewind(f->gz) != 0) {
        errno = EINVAL;
        return -1;
    }
    return 0;
}

FILE *dump_file_read(int fd)
{
    static const cookie_io_functions_t functions = {
        .read = read_bytes, .seek = seek_bytes, .close = end_file};
    const struct file how = {0};
    return open_file(fd, "r", "rb", &how, &functions);
}
