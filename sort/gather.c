#include "sort/gather.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>

#include "io/file.h"

void gather_init(struct gather *g, const struct catalog *c)
{
    *g = (struct gather){.catalog = c};
}

static void gather_release(struct gather *g)
{
    for (unsigned i = 0; i < g->count; i++)
        fdcache_put(catalog_files(g->catalog), g->ranges[i].shard);
    g->count = 0;
}

void gather_done(struct gather *g)
{
    gather_release(g);
}

int gather_add(struct gather *g, uint32_t shard, uint64_t offset, size_t length, void *to,
               struct error *err)
{
    if (g->count > 0) {
        struct gather_range *last = &g->ranges[g->count - 1];
        if (last->shard == shard && last->offset + last->length == offset &&
            last->to + last->length == to) {
            last->length += length;
            return 0;
        }
    }
    if (g->count == GATHER_MAX) {
        int rc = gather_flush(g, err);
        if (rc != 0)
            return rc;
    }
    int fd;
    int rc = fdcache_get(catalog_files(g->catalog), shard, &fd, err);
    if (rc != 0)
        return rc;
    g->ranges[g->count++] = (struct gather_range){
        .shard = shard, .fd = fd, .offset = offset, .length = length, .to = to};
    return 0;
}

/* Bytes that could be had without waiting. */
static size_t range_probe(struct gather *g, const struct gather_range *r)
{
    struct iovec v = {.iov_base = r->to, .iov_len = r->length};
    ssize_t n = preadv2(r->fd, &v, 1, (off_t)r->offset, RWF_NOWAIT);
    if (n < 0)
        g->probe_unsupported = errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL;
    return n < 0 ? 0 : (size_t)n;
}

static void gather_advise(const struct gather *g, unsigned from)
{
    for (unsigned i = from; i < g->count; i++)
        posix_fadvise(g->ranges[i].fd, (off_t)g->ranges[i].offset, (off_t)g->ranges[i].length,
                      POSIX_FADV_WILLNEED);
}

int gather_flush(struct gather *g, struct error *err)
{
    int rc = 0;
    bool advised = false;
    for (unsigned i = 0; rc == 0 && i < g->count; i++) {
        const struct gather_range *r = &g->ranges[i];
        size_t got = advised || g->probe_unsupported ? 0 : range_probe(g, r);
        if (got == r->length)
            continue;
        if (!advised && !g->probe_unsupported) {
            gather_advise(g, i);
            advised = true;
        }
        rc = file_pread_full(r->fd, r->to + got, r->length - got, r->offset + got, err);
        if (rc != 0)
            rc = error_recode(err, rc == E_LENGTH ? E_SHARD_CORRUPT : rc, "read shard '%s'",
                              catalog_shard(g->catalog, r->shard)->name);
    }
    gather_release(g);
    return rc;
}

int feed_begin(struct feed *f, const struct catalog *c, uint32_t shard, uint32_t position,
               struct error *err)
{
    *f = (struct feed){.catalog = c};
    return catalog_find(c, shard, position, &f->place, err);
}

ssize_t feed_fill(struct feed *f, struct gather *g, unsigned char *out, size_t max,
                  struct error *err)
{
    if (f->consumed == f->piece.length) {
        if (f->next == f->place.pieces)
            return 0;
        int rc = catalog_piece(f->catalog, &f->place, f->next, &f->piece, err);
        if (rc != 0)
            return rc;
        f->next++;
        f->consumed = 0;
    }
    uint64_t left = f->piece.length - f->consumed;
    size_t n = left < max ? (size_t)left : max;
    int rc = f->piece.is_inline
                 ? catalog_inline(f->catalog, &f->place, &f->piece, f->consumed, out, n, err)
                 : gather_add(g, f->place.shard, f->piece.offset + f->consumed, n, out, err);
    f->consumed += n;
    return rc != 0 ? rc : (ssize_t)n;
}
