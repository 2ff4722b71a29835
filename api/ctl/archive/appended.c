/* The scanner sees the object with its end blocks added, so that a tar that lacks them is whole. */
#include "api/ctl/archive/appended.h"

#include <string.h>

#include "api/ctl/interrupt.h"
#include "common/mem.h"
#include "sort/shard/tar.h"
#include "sort/shard/tar_header.h"

#define END_BLOCKS ((uint64_t)2 * TAR_BLOCK)

/* ---- where it ends ---- */

static int read_exactly(void *ctx, void *out, size_t len, uint64_t offset, struct error *err)
{
    const struct unarchiver_source *s = ctx;
    unsigned char *to = out;
    int rc = interrupted() ? error_set(err, E_ABORTED, "interrupted")
                           : s->seek(s->ctx, offset < s->size ? offset : s->size, err);
    while (rc == 0 && len > 0) {
        ssize_t n = s->read(s->ctx, to, len, err);
        if (n <= 0) {
            memset(to, 0, n == 0 ? len : 0);
            return (int)n;
        }
        to += n;
        len -= (size_t)n;
    }
    return rc;
}

int appended_find_end(struct object_reader *r, const char *name, uint64_t *end, struct error *err)
{
    struct unarchiver_source source = object_reader_source(r);
    struct tar_member m;
    int rc;
    *end = 0;
    _cleanup_(tar_scan_freep)
    struct tar_scan *s = tar_scan_new(-1, tar_padded(source.size) + END_BLOCKS, name);
    tar_scan_source(s, read_exactly, &source);
    tar_scan_sparse(s);
    while ((rc = tar_scan_next(s, &m, err)) > 0)
        *end = m.contents_offset + tar_padded(m.contents_size);
    if (rc == 0 && *end > source.size)
        rc = error_set(err, E_SHARD_CORRUPT, "shard '%s': its last member is cut short", name);
    return rc;
}

/* ---- the next version ---- */

static ptrdiff_t read_next(void *context, void *to, size_t room)
{
    struct appended *a = context;
    struct error e = ERROR_INIT;
    if (interrupted())
        return -1;
    if (a->at == a->end) {
        const struct dfc_source members = bundle_source(a->bundle);
        return members.read(members.context, to, room);
    }
    const struct unarchiver_source tar = object_reader_source(a->reader);
    uint64_t left = a->end - a->at;
    ssize_t n = tar.read(tar.ctx, to, left < room ? (size_t)left : room, &e);
    a->failed = n <= 0;
    a->at += n > 0 ? (uint64_t)n : 0;
    return n > 0 ? n : -1;
}

static int rewind_all(void *context)
{
    struct appended *a = context;
    struct error e = ERROR_INIT;
    const struct unarchiver_source tar = object_reader_source(a->reader);
    const struct dfc_source members = bundle_source(a->bundle);
    a->at = 0;
    return !a->failed && tar.seek(tar.ctx, 0, &e) == 0 ? members.rewind(members.context) : -1;
}

struct dfc_source appended_source(struct appended *a)
{
    return (struct dfc_source){.read = read_next, .rewind = rewind_all, .context = a, .size = -1};
}

void appended_failure(const struct appended *a, struct dfc_error *err)
{
    if (err->result != DFC_LOCAL)
        return;
    bundle_failure(a->bundle, err);
    if (a->failed)
        object_reader_failure(a->reader, err);
}
