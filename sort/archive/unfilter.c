#include "sort/archive/unfilter.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>

#include "common/mem.h"

#define BLOCK 65536

struct unfilter {
    gunzip_source *source;
    void *ctx;
    const char *what;
    struct gunzip *gunzip; /* NULL: libarchive reads */
    struct archive *archive;
    bool open;           /* the archive is */
    bool ended;          /* nothing comes any more */
    struct error failed; /* of the source */
    size_t first;        /* bytes in the block that the source gave before */
    unsigned char block[BLOCK];
};

/* --- which ------------------------------------------------------------------------------------ */

struct magic {
    unsigned char bytes[6];
    unsigned char len;
    unsigned char loose; /* bits of the first byte that may be any */
};

static const struct magic magics[] = {
    {.bytes = {0x1f, 0x8b}, .len = 2},                          /* gzip */
    {.bytes = {'B', 'Z', 'h'}, .len = 3},                       /* bzip2 */
    {.bytes = {0xfd, '7', 'z', 'X', 'Z', 0}, .len = 6},         /* xz */
    {.bytes = {0x28, 0xb5, 0x2f, 0xfd}, .len = 4},              /* zstd */
    {.bytes = {0x04, 0x22, 0x4d, 0x18}, .len = 4},              /* lz4 */
    {.bytes = {0x02, 0x21, 0x4c, 0x18}, .len = 4},              /* lz4, its first form */
    {.bytes = {0x50, 0x2a, 0x4d, 0x18}, .len = 4, .loose = 15}, /* a frame to skip: lz4, zstd */
};

bool unfilter_knows(const unsigned char *data, size_t len)
{
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
        const struct magic *m = &magics[i];
        if (len >= m->len && (data[0] & ~m->loose) == m->bytes[0] &&
            memcmp(data + 1, m->bytes + 1, m->len - 1u) == 0)
            return true;
    }
    return false;
}

/* --- by libarchive ---------------------------------------------------------------------------- */

static int (*const filters[])(struct archive *) = {
    archive_read_support_filter_gzip, /* within another one: so that it is refused */
    archive_read_support_filter_bzip2, archive_read_support_filter_xz,
    archive_read_support_filter_zstd,  archive_read_support_filter_lz4,
};

static la_ssize_t read_more(struct archive *a, void *ctx, const void **data)
{
    struct unfilter *f = ctx;
    ssize_t n = (ssize_t)f->first;
    f->first = 0;
    if (n == 0)
        n = f->source(f->ctx, f->block, BLOCK, &f->failed);
    if (n < 0) {
        archive_set_error(a, EIO, "the source failed");
        return -1;
    }
    *data = f->block;
    return n;
}

static int refuse(const struct unfilter *f, int code, const char *why, struct error *err)
{
    return error_set(err, code, "%s: %s", f->what, why);
}

/* What the source said, else what libarchive says. */
static int failure(const struct unfilter *f, struct error *err)
{
    const char *sentence = archive_error_string(f->archive);
    if (f->failed.code == 0)
        return refuse(f, E_SHARD_CORRUPT,
                      sentence != NULL ? sentence : "it is damaged or cut short", err);
    if (err != NULL)
        *err = f->failed;
    return f->failed.code;
}

static bool prepare(struct unfilter *f)
{
    bool fine = archive_read_support_format_raw(f->archive) == ARCHIVE_OK &&
                archive_read_support_format_empty(f->archive) == ARCHIVE_OK;
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        fine = fine && filters[i](f->archive) == ARCHIVE_OK;
    return fine && archive_read_set_read_callback(f->archive, read_more) == ARCHIVE_OK &&
           archive_read_set_callback_data(f->archive, f) == ARCHIVE_OK;
}

static int open_stream(struct unfilter *f, struct error *err)
{
    struct archive_entry *e = NULL;
    f->open = true;
    f->archive = archive_read_new();
    if (f->archive == NULL || !prepare(f))
        return refuse(f, E_NOMEM, "no memory to decompress with", err);
    if (archive_read_open1(f->archive) != ARCHIVE_OK)
        return failure(f, err);
    if (archive_filter_count(f->archive) > 2) /* the source itself counts as one */
        return refuse(f, E_SHARD_UNSUPPORTED, "it is compressed more than once", err);
    int state = archive_read_next_header(f->archive, &e);
    f->ended = state == ARCHIVE_EOF;
    return state == ARCHIVE_OK || f->ended ? 0 : failure(f, err);
}

static ssize_t read_stream(struct unfilter *f, void *to, size_t max, struct error *err)
{
    int rc = f->open ? 0 : open_stream(f, err);
    if (rc != 0)
        return rc;
    ssize_t n = f->ended ? 0 : archive_read_data(f->archive, to, max);
    f->ended = n == 0;
    return n >= 0 ? n : failure(f, err);
}

/* --- both ------------------------------------------------------------------------------------- */

struct unfilter *unfilter_new(gunzip_source *source, void *ctx, const void *first, size_t len,
                              const char *what)
{
    struct unfilter *f = xcalloc(1, sizeof *f);
    f->source = source;
    f->ctx = ctx;
    f->what = what;
    if (gunzip_knows(first, len)) {
        f->gunzip = gunzip_new(source, ctx, first, len);
        return f;
    }
    f->first = len;
    memcpy(f->block, first, len);
    return f;
}

ssize_t unfilter_read(struct unfilter *f, void *to, size_t max, struct error *err)
{
    if (f->gunzip == NULL)
        return read_stream(f, to, max, err);
    ssize_t n = gunzip_read(f->gunzip, to, max, err);
    const char *why = gunzip_complaint(f->gunzip);
    return why != NULL ? refuse(f, E_SHARD_CORRUPT, why, err) : n;
}

void unfilter_free(struct unfilter *f)
{
    if (f == NULL)
        return;
    gunzip_free(f->gunzip);
    if (f->archive != NULL)
        archive_read_free(f->archive);
    free(f);
}
