/* .7z, by libarchive: read only, and where a target's archive_formats have 7zip.
 *
 * Of a member its name, contents, permissions, time, directories and symbolic links become a tar.
 * Anything else is refused, and so is a member that is encrypted. */
#include <string.h>

#include "common/mem.h"
#include "io/file.h"
#include "sort/archive/unarchiver.h"
#include "sort/shard/format_parts.h"
#include "sort/shard/tar.h"
#include "sort/shard/tar_make.h"

enum { PIECE = 64 << 10 };

struct un7z {
    const struct format_input *in;
    uint64_t at;
    struct sink tar;
    struct buf headers;
    char piece[PIECE];
};

/* --- the file --------------------------------------------------------------------------------- */

static ssize_t read_file(void *ctx, void *to, size_t max, struct error *err)
{
    struct un7z *z = ctx;
    const struct format_input *in = z->in;
    const uint64_t left = in->size - z->at;
    const size_t len = left < max ? (size_t)left : max;
    int rc = in->check != NULL ? in->check(in->check_ctx, err) : 0;
    if (rc == 0)
        rc = file_pread_full(in->fd, to, len, z->at, err);
    if (rc == E_LENGTH)
        return error_set(err, E_SHARD_CORRUPT, "shard '%s' is shorter than its size says",
                         in->shard);
    if (rc != 0)
        return rc;
    z->at += len;
    return (ssize_t)len;
}

static int seek_file(void *ctx, uint64_t offset, struct error *err)
{
    struct un7z *z = ctx;
    (void)err;
    z->at = offset;
    return 0;
}

/* --- members ---------------------------------------------------------------------------------- */

static int refuse(const struct un7z *z, const struct unarchiver_member *m, const char *why,
                  struct error *err)
{
    return error_set(err, E_SHARD_UNSUPPORTED, "shard '%s': member '%.256s' %s", z->in->shard,
                     m->path, why);
}

static int copy_contents(struct un7z *z, struct unarchiver *u, uint64_t size, struct error *err)
{
    ssize_t n;
    while ((n = unarchiver_read(u, z->piece, PIECE, err)) > 0) {
        int rc = z->tar.write(z->tar.ctx, z->piece, (size_t)n, err);
        if (rc != 0)
            return rc;
    }
    return n < 0 ? (int)n : tar_put_padding(z->tar, size, err);
}

static int put_member(struct un7z *z, struct unarchiver *u, const struct unarchiver_member *m,
                      struct error *err)
{
    const struct tar_made made = {.path = m->path,
                                  .path_len = strlen(m->path),
                                  .link = m->link,
                                  .link_len = strlen(m->link),
                                  .type = m->type,
                                  .size = m->type == '0' ? m->size : 0,
                                  .mode = m->mode,
                                  .mtime = m->mtime};
    if (strchr("025", m->type) == NULL)
        return refuse(z, m, "is no file, directory or symbolic link", err);
    if (made.path_len > TAR_PATH_MAX || made.link_len > TAR_PATH_MAX)
        return refuse(z, m, "has a name or a link that is too long", err);
    if (m->type == '0' && !m->size_known)
        return refuse(z, m, "does not state its size", err);
    buf_clear(&z->headers);
    tar_make_headers(&z->headers, &made);
    int rc = z->tar.write(z->tar.ctx, z->headers.data, z->headers.len, err);
    return rc == 0 && m->type == '0' ? copy_contents(z, u, made.size, err) : rc;
}

static int put_all(struct un7z *z, struct unarchiver *u, struct error *err)
{
    struct unarchiver_member m;
    int rc;
    while ((rc = unarchiver_next(u, &m, err)) > 0) {
        rc = put_member(z, u, &m, err);
        if (rc != 0)
            return rc;
    }
    return rc != 0 ? rc : tar_put_end(z->tar, err);
}

/* --- the whole -------------------------------------------------------------------------------- */

static int decode_7z(const struct format_input *in, struct sink tar, struct error *err)
{
    struct unarchiver_limits limits = UNARCHIVER_LIMITS;
    _cleanup_(unarchiver_freep)
    struct unarchiver *u = NULL;
    _cleanup_free_ char *what = xprintf("shard '%s'", in->shard);
    if ((in->formats & UNARCHIVER_7ZIP) == 0)
        return error_set(err, E_SHARD_UNSUPPORTED,
                         "shard '%s' is a 7z: add 7zip to archive_formats of the targets",
                         in->shard);
    _cleanup_free_ struct un7z *z = xcalloc(1, sizeof *z);
    z->in = in;
    z->tar = tar;
    const struct unarchiver_source source = {
        .read = read_file, .seek = seek_file, .ctx = z, .size = in->size, .what = what};
    limits.formats = UNARCHIVER_7ZIP;
    limits.compressed = false;
    int rc = unarchiver_open(&source, &limits, &u, err);
    if (rc == 0)
        rc = put_all(z, u, err);
    buf_done(&z->headers);
    return rc;
}

const struct shard_format_ops format_7z = {
    .extensions = {".7z"},
    .content_type = "application/x-7z-compressed",
    .decode = decode_7z,
    .read_only = true,
};
