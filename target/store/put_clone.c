/* A PUT of all bytes of another file: XFS and btrfs let two files share them. */
#include "target/store/put_internal.h"

#include <errno.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "common/fault.h"
#include "common/mem.h"
#include "io/file.h"
#include "io/meter.h"
#include "target/store/file_md5.h"

enum {
    CLONE_MIN = 256 * 1024, /* what is smaller is written sooner than shared */
    PIECE = 1 << 20,
};

/* false: the two are on different file systems, or theirs shares nothing. */
static bool share(struct object_put *p, int fd)
{
    struct meter *meter = p->commit.place.mp->meter;
    meter_enter(meter);
    bool shared = fault_errno("disk.copy") == 0 && ioctl(p->commit.fd, FICLONE, fd) == 0;
    meter_leave(meter);
    return shared;
}

static int check_size(const struct object_put *p, struct error *err)
{
    struct stat st;
    if (fstat(p->commit.fd, &st) != 0)
        return error_errno(err, errno, "look at '%s'", p->commit.tmp);
    if ((uint64_t)st.st_size == p->size)
        return 0;
    return error_set(err, E_LENGTH, "%llu of the announced %llu bytes have come",
                     (unsigned long long)st.st_size, (unsigned long long)p->size);
}

/* Of the bytes that are here by now, whatever becomes of the other file. */
static int sum_up(struct object_put *p, int (*go_on)(void *ctx, struct error *err), void *ctx,
                  struct error *err)
{
    _cleanup_free_ char *piece = xmalloc(PIECE);
    int code = 0;
    while (p->written < p->size && code == 0) {
        const uint64_t left = p->size - p->written;
        const size_t len = left < PIECE ? (size_t)left : PIECE;
        code = file_pread_full(p->commit.fd, piece, len, p->written, err);
        if (code != 0)
            return mountpath_failed(p->commit.place.mp, code);
        put_sums_update(&p->sums, piece, len);
        if (p->md5 != NULL)
            file_md5_wrote(p->md5, piece, len);
        p->written += len;
        code = go_on(ctx, err);
    }
    return code;
}

int object_put_clone(struct object_put *p, int fd, int (*go_on)(void *ctx, struct error *err),
                     void *ctx, bool *cloned, struct error *err)
{
    *cloned = put_is_announced(p) && p->size >= CLONE_MIN && p->written == 0 && share(p, fd);
    if (!*cloned)
        return 0;
    int code = check_size(p, err);
    return code != 0 ? code : sum_up(p, go_on, ctx, err);
}
