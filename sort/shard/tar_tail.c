/* The scanner sees the file with end blocks added, so that a tar that lacks them is whole. */
#include "sort/shard/tar_tail.h"

#include <string.h>

#include "sort/shard/tar_header.h"

#define END_BLOCKS ((uint64_t)2 * TAR_BLOCK)

static int read_with_end(void *ctx, void *out, size_t len, uint64_t offset, struct error *err)
{
    const struct tar_source *in = ctx;
    const uint64_t left = offset < in->size ? in->size - offset : 0;
    const size_t there = left < len ? (size_t)left : len;
    memset((char *)out + there, 0, len - there);
    return there > 0 ? in->read(in->ctx, out, there, offset, err) : 0;
}

int tar_tail_find(const struct tar_source *in, tar_member_fn *each, void *ctx, uint64_t *end,
                  struct error *err)
{
    struct tar_member m;
    int rc = 0;
    *end = 0;
    _cleanup_(tar_scan_freep)
    struct tar_scan *s = tar_scan_new(-1, tar_padded(in->size) + END_BLOCKS, in->shard);
    tar_scan_source(s, read_with_end, (void *)in);
    tar_scan_sparse(s);
    while (rc == 0 && (rc = tar_scan_next(s, &m, err)) > 0) {
        *end = m.contents_offset + tar_padded(m.contents_size);
        rc = each(ctx, &m, err);
    }
    if (rc == 0 && *end > in->size)
        rc = error_set(err, E_SHARD_CORRUPT, "shard '%s': its last member is cut short", in->shard);
    return rc;
}
