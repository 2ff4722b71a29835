#include "sort/shard/gather.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>

#include "common/fault.h"
#include "common/metrics.h"
#include "io/file.h"

void gather_init(struct gather *g, const struct catalog *c)
{
    *g = (struct gather){.catalog = c};
}

static void gather_release(struct gather *g)
{
    for (unsigned i = 0; i < g->file_count; i++)
        catalog_close(g->catalog, g->files[i].shard);
    g->file_count = 0;
    g->count = 0;
}

static void sum_drop(struct gather *g)
{
    checksum_free(g->sum);
    g->sum = NULL;
}

void gather_done(struct gather *g)
{
    gather_release(g);
    sum_drop(g);
    object_record_done(&g->made);
}

/* --- collecting ------------------------------------------------------------------------------- */

static struct gather_file *file_find(struct gather *g, uint32_t shard)
{
    uint8_t *hint = &g->hints[shard % GATHER_HINTS];
    if (*hint < g->file_count && g->files[*hint].shard == shard)
        return &g->files[*hint];
    for (unsigned i = 0; i < g->file_count; i++) {
        if (g->files[i].shard == shard) {
            *hint = (uint8_t)i;
            return &g->files[i];
        }
    }
    return NULL;
}

static int file_open(struct gather *g, uint32_t shard, struct gather_file **out, struct error *err)
{
    int fd = -1;
    uint64_t at = 0;
    int rc = g->file_count == GATHER_FILES ? gather_flush(g, err) : 0;
    if (rc == 0)
        rc = catalog_open(g->catalog, shard, &fd, &at, err);
    if (rc != 0)
        return rc;
    g->hints[shard % GATHER_HINTS] = (uint8_t)g->file_count;
    *out = &g->files[g->file_count++];
    **out = (struct gather_file){.shard = shard,
                                 .fd = fd,
                                 .at = at,
                                 .last = GATHER_RANGES,
                                 .object = catalog_shard(g->catalog, shard)->object};
    return 0;
}

static void range_add(struct gather *g, struct gather_file *f, uint64_t offset, size_t length,
                      unsigned char *to)
{
    struct gather_range *last = f->last < GATHER_RANGES ? &g->ranges[f->last] : NULL;
    bool follows = last != NULL && last->offset + last->length == offset;
    if (follows && last->to + last->length == to) {
        last->length += length;
        return;
    }
    f->last = (uint16_t)g->count++;
    if (follows)
        last->next = f->last;
    g->ranges[f->last] = (struct gather_range){
        .offset = offset,
        .length = length,
        .to = to,
        .file = (uint16_t)(f - g->files),
        .next = GATHER_RANGES,
        .begins = !follows,
    };
}

int gather_add(struct gather *g, uint32_t shard, uint64_t offset, size_t length, void *to,
               struct error *err)
{
    int rc = g->count == GATHER_RANGES ? gather_flush(g, err) : 0;
    if (rc != 0)
        return rc;
    struct gather_file *f = file_find(g, shard);
    if (f == NULL)
        rc = file_open(g, shard, &f, err);
    if (rc == 0)
        range_add(g, f, f->at + offset, length, to);
    return rc;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* The run's ranges as a vector; all their bytes. */
static size_t run_vector(const struct gather *g, unsigned first, struct iovec *v, int *count)
{
    size_t bytes = 0;
    *count = 0;
    for (unsigned i = first; i < GATHER_RANGES; i = g->ranges[i].next) {
        const struct gather_range *r = &g->ranges[i];
        v[(*count)++] = (struct iovec){.iov_base = r->to, .iov_len = r->length};
        bytes += r->length;
    }
    return bytes;
}

static int run_fd(const struct gather *g, unsigned first)
{
    return g->files[g->ranges[first].file].fd;
}

/* Bytes that could be had without waiting. */
static size_t run_probe(struct gather *g, unsigned first, const struct iovec *v, int count)
{
    ssize_t n = preadv2(run_fd(g, first), v, count, (off_t)g->ranges[first].offset, RWF_NOWAIT);
    if (n < 0)
        g->probe_unsupported = errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL;
    return n < 0 ? 0 : (size_t)n;
}

static void gather_advise(const struct gather *g, unsigned from)
{
    for (unsigned i = from; i < g->count; i++) {
        const struct gather_range *r = &g->ranges[i];
        posix_fadvise(g->files[r->file].fd, (off_t)r->offset, (off_t)r->length,
                      POSIX_FADV_WILLNEED);
    }
}

/* What is beyond the first `got` bytes of the run. */
static int run_read(const struct gather *g, unsigned first, size_t got, struct error *err)
{
    int rc = 0;
    for (unsigned i = first; rc == 0 && i < GATHER_RANGES; i = g->ranges[i].next) {
        const struct gather_range *r = &g->ranges[i];
        size_t here = got < r->length ? got : r->length;
        got -= here;
        if (here < r->length)
            rc = file_pread_full(run_fd(g, first), r->to + here, r->length - here, r->offset + here,
                                 err);
    }
    if (rc == 0)
        return 0;
    const struct gather_file *f = &g->files[g->ranges[first].file];
    return error_recode(err, rc == E_LENGTH ? E_SHARD_CORRUPT : rc, "read %s '%s'",
                        f->object != NULL ? "object" : "shard",
                        catalog_shard(g->catalog, f->shard)->name);
}

/* A test's slow or failing disk, of objects. */
static int batch_fault(const struct gather *g, struct error *err)
{
    const struct gather_file *f = g->count > 0 ? &g->files[g->ranges[0].file] : NULL;
    bool reads = f != NULL && f->object != NULL;
    int errnum = reads ? fault_errno_at("disk.read", catalog_bucket(g->catalog)) : 0;
    return errnum == 0 ? 0
                       : error_errno(err, errnum, "read object '%s'",
                                     catalog_shard(g->catalog, f->shard)->name);
}

/* --- checksums of objects --------------------------------------------------------------------- */

static int sum_end(struct gather *g, const struct gather_file *f, struct error *err)
{
    struct checksum_value found;
    checksum_final(g->sum, &found);
    sum_drop(g);
    if (checksum_equal(&f->object->checksum, &found))
        return 0;
    metric_add(metric_get(M_checksum_errors_total, NULL), 1);
    return error_set(err, E_CHECKSUM,
                     "object '%s/%s': its bytes do not have the checksum that it was stored with",
                     catalog_bucket(g->catalog), catalog_shard(g->catalog, f->shard)->name);
}

/* Records are read one after the other, each from its beginning to its end. */
static int sum_range(struct gather *g, const struct gather_range *r, struct error *err)
{
    const struct gather_file *f = &g->files[r->file];
    if (f->object == NULL || f->object->checksum.type == CHECKSUM_NONE)
        return 0;
    if (r->offset == 0) {
        sum_drop(g);
        g->sum = checksum_new(f->object->checksum.type);
        g->sum_shard = f->shard;
        g->sum_at = 0;
    }
    if (g->sum == NULL || g->sum_shard != f->shard || g->sum_at != r->offset)
        return error_set(err, E_INTERNAL, "object '%s' is not read in order",
                         catalog_shard(g->catalog, f->shard)->name);
    checksum_update(g->sum, r->to, r->length);
    g->sum_at += r->length;
    return g->sum_at == catalog_shard(g->catalog, f->shard)->size ? sum_end(g, f, err) : 0;
}

static int sum_ranges(struct gather *g, struct error *err)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < g->count; i++)
        rc = sum_range(g, &g->ranges[i], err);
    return rc;
}

int gather_flush(struct gather *g, struct error *err)
{
    struct iovec v[GATHER_RANGES];
    int rc = batch_fault(g, err);
    bool advised = false;
    for (unsigned i = 0; rc == 0 && i < g->count; i++) {
        if (!g->ranges[i].begins)
            continue;
        int count;
        size_t bytes = run_vector(g, i, v, &count);
        size_t got = advised || g->probe_unsupported ? 0 : run_probe(g, i, v, count);
        if (got == bytes)
            continue;
        if (!advised && !g->probe_unsupported) {
            gather_advise(g, i);
            advised = true;
        }
        rc = run_read(g, i, got, err);
    }
    if (rc == 0)
        rc = sum_ranges(g, err);
    gather_release(g);
    return rc;
}

/* --- records ---------------------------------------------------------------------------------- */

static int feed_make(struct feed *f, struct object_record *made, struct error *err)
{
    const struct catalog_shard *s = catalog_shard(f->catalog, f->place.shard);
    int rc = object_record_make(made, catalog_spec(f->catalog), s->name, s->size,
                                s->object->modified_s, err);
    if (rc == 0 && made->size != f->place.size)
        rc = error_set(err, E_INTERNAL, "object '%s' makes %llu bytes of an archive, not %llu",
                       s->name, (unsigned long long)made->size, (unsigned long long)f->place.size);
    f->made = made;
    f->place.pieces = (uint32_t)made->count;
    return rc;
}

int feed_begin(struct feed *f, struct gather *g, uint32_t shard, uint32_t position,
               struct error *err)
{
    *f = (struct feed){.catalog = g->catalog};
    int rc = catalog_find(g->catalog, shard, position, &f->place, err);
    return rc == 0 && f->place.is_object ? feed_make(f, &g->made, err) : rc;
}

static int piece_find(struct feed *f, struct error *err)
{
    if (f->made == NULL)
        return catalog_piece(f->catalog, &f->place, f->next, &f->piece, err);
    f->piece = f->made->pieces[f->next];
    return 0;
}

/* The next n bytes of the present piece, which is inline. */
static int piece_copy(const struct feed *f, unsigned char *out, size_t n, struct error *err)
{
    if (f->made == NULL)
        return catalog_inline(f->catalog, &f->place, &f->piece, f->consumed, out, n, err);
    memcpy(out, f->made->inlines.data + f->piece.offset + f->consumed, n);
    return 0;
}

/* 1: there are bytes in the present piece; 0: the record has ended. */
static int feed_piece(struct feed *f, struct error *err)
{
    if (f->consumed < f->piece.length)
        return 1;
    if (f->next == f->place.pieces)
        return 0;
    int rc = piece_find(f, err);
    if (rc != 0)
        return rc;
    f->next++;
    f->consumed = 0;
    return 1;
}

ssize_t feed_fill(struct feed *f, struct gather *g, unsigned char *out, size_t max,
                  struct error *err)
{
    int rc = feed_piece(f, err);
    if (rc <= 0)
        return rc;
    uint64_t left = f->piece.length - f->consumed;
    size_t n = left < max ? (size_t)left : max;
    rc = f->piece.is_inline
             ? piece_copy(f, out, n, err)
             : gather_add(g, f->place.shard, f->piece.offset + f->consumed, n, out, err);
    f->consumed += n;
    return rc != 0 ? rc : (ssize_t)n;
}

int feed_skip(struct feed *f, uint64_t bytes, struct error *err)
{
    while (bytes > 0) {
        int rc = feed_piece(f, err);
        if (rc < 0)
            return rc;
        assert(rc > 0);
        uint64_t left = f->piece.length - f->consumed;
        uint64_t n = left < bytes ? left : bytes;
        f->consumed += n;
        bytes -= n;
    }
    return 0;
}
