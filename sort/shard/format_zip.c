/* .zip: entries in the order of the central directory, stored or deflated, ZIP64 where it is
 * needed.
 *
 * Read: what the central directory says is compared with each entry's own header, sizes and CRC-32
 * with what comes out.  Of an entry name (its bytes, whatever their encoding), contents,
 * permissions (0644 where there are none), time (that of the extended timestamp, else the DOS one,
 * as UTC), directories and symbolic links go through.  Encrypted entries, other compressions and
 * other kinds of files are refused, as is an archive that does not begin with the file's first byte
 * or is one of several volumes.
 *
 * Written: deflated (stored where there is nothing), sizes behind the contents, the DOS time in UTC
 * within what it can say, and the extended timestamp where 32 bits hold it. */
#include <isa-l/igzip_lib.h>
#include <isa-l/crc.h>
#include <string.h>
#include <sys/stat.h>

#include "common/mem.h"
#include "io/file.h"
#include "sort/shard/format_parts.h"
#include "sort/shard/inflow.h"
#include "sort/shard/tar.h"
#include "sort/shard/tar_make.h"
#include "sort/shard/zip.h"
#include "sort/shard/zip_tail.h"

#define OUT_BYTES (256 * 1024)
#define LINK_MAX 4096

struct entry {
    uint16_t flags, method;
    uint32_t dos_time, crc, attributes;
    uint8_t host;
    uint64_t stored, size, offset; /* bytes in the file, bytes of contents, own header */
    int64_t mtime;
    struct buf name;
};

struct unzip {
    const struct format_input *in;
    struct inflow directory, data;
    struct sink tar;
    struct inflate_state *inflate;
    unsigned char *out;
    struct entry entry;
    struct buf extra, own_name, headers;
};

static int zip_fail(const struct format_input *in, int code, uint64_t offset, const char *why,
                    struct error *err)
{
    return error_set(err, code, "shard '%s', byte %llu: %s", in->shard, (unsigned long long)offset,
                     why);
}

static int zip_corrupt(const struct format_input *in, uint64_t offset, const char *why,
                       struct error *err)
{
    return zip_fail(in, E_SHARD_CORRUPT, offset, why, err);
}

static int zip_unsupported(const struct format_input *in, uint64_t offset, const char *why,
                           struct error *err)
{
    return zip_fail(in, E_SHARD_UNSUPPORTED, offset, why, err);
}

/* --- where the directory is ------------------------------------------------------------------- */

static int read_at(void *ctx, void *out, size_t len, uint64_t offset, struct error *err)
{
    const struct format_input *in = ctx;
    int rc = file_pread_full(in->fd, out, len, offset, err);
    return rc != 0 ? error_wrap(err, "read shard '%s'", in->shard) : 0;
}

static int find_end(const struct format_input *in, struct zip_tail *out, struct error *err)
{
    const struct zip_source source = {
        .read = read_at, .ctx = (void *)in, .size = in->size, .shard = in->shard};
    return zip_tail_find(&source, out, err);
}

/* --- one entry of the directory --------------------------------------------------------------- */

/* The fields that say "all ones" stand here, in this order. */
static bool apply_zip64(struct entry *e, const unsigned char *at, size_t len)
{
    uint64_t *const fields[] = {&e->size, &e->stored, &e->offset};
    for (size_t i = 0; i < 3; i++) {
        if (*fields[i] != UINT32_MAX)
            continue;
        if (len < 8)
            return false;
        *fields[i] = zip_u64(at);
        at += 8;
        len -= 8;
    }
    return true;
}

static bool apply_extra(struct entry *e, const struct buf *extra)
{
    const unsigned char *at = (const unsigned char *)extra->data;
    for (size_t left = extra->len; left >= 4;) {
        size_t len = zip_u16(at + 2);
        if (len > left - 4)
            return false;
        if (zip_u16(at) == ZIP_EXTRA_64 && !apply_zip64(e, at + 4, len))
            return false;
        if (zip_u16(at) == ZIP_EXTRA_TIME && len >= 5 && (at[4] & 1) != 0)
            e->mtime = (int32_t)zip_u32(at + 5);
        at += 4 + len;
        left -= 4 + len;
    }
    return true;
}

static int get_buf(struct inflow *f, size_t len, struct buf *out, struct error *err)
{
    buf_clear(out);
    buf_reserve(out, len + 1);
    int rc = inflow_get(f, out->data, len, err);
    out->len = rc == 0 ? len : 0;
    out->data[out->len] = '\0';
    return rc;
}

static int get_entry(struct unzip *z, struct error *err)
{
    unsigned char r[ZIP_CENTRAL];
    struct entry *e = &z->entry;
    int rc = inflow_get(&z->directory, r, sizeof r, err);
    if (rc == 0 && zip_u32(r) != ZIP_SIG_CENTRAL)
        rc = inflow_corrupt(&z->directory, "the central directory is damaged", err);
    if (rc != 0)
        return rc;
    e->host = r[5];
    e->flags = zip_u16(r + 8);
    e->method = zip_u16(r + 10);
    e->dos_time = zip_u32(r + 12);
    e->crc = zip_u32(r + 16);
    e->stored = zip_u32(r + 20);
    e->size = zip_u32(r + 24);
    e->attributes = zip_u32(r + 38);
    e->offset = zip_u32(r + 42);
    e->mtime = zip_time_from_dos(e->dos_time);
    uint64_t comment = zip_u16(r + 32);
    rc = get_buf(&z->directory, zip_u16(r + 28), &e->name, err);
    if (rc == 0)
        rc = get_buf(&z->directory, zip_u16(r + 30), &z->extra, err);
    if (rc == 0 && !apply_extra(e, &z->extra))
        rc = inflow_corrupt(&z->directory, "the extra fields that end here are damaged", err);
    inflow_seek(&z->directory, inflow_offset(&z->directory) + (rc == 0 ? comment : 0));
    return rc;
}

static int check_entry(const struct unzip *z, uint64_t at, struct error *err)
{
    const struct entry *e = &z->entry;
    if ((e->flags & (ZIP_FLAG_ENCRYPTED | ZIP_FLAG_MASKED)) != 0)
        return zip_unsupported(z->in, at, "an encrypted entry", err);
    if (e->method != ZIP_STORED && e->method != ZIP_DEFLATED)
        return zip_unsupported(z->in, at, "an entry that is neither stored nor deflated", err);
    if (e->name.len == 0 || memchr(e->name.data, '\0', e->name.len) != NULL)
        return zip_corrupt(z->in, at, "an entry without a name, or with a NUL in it", err);
    if (e->method == ZIP_STORED && e->stored != e->size)
        return zip_corrupt(z->in, at, "a stored entry of two sizes", err);
    return 0;
}

/* --- its contents ----------------------------------------------------------------------------- */

struct checked {
    struct inflow *from; /* for messages */
    struct sink to;
    uint32_t crc;
    uint64_t left; /* bytes that may still come */
};

static int checked_write(void *ctx, const void *data, size_t len, struct error *err)
{
    struct checked *c = ctx;
    if (len > c->left)
        return inflow_corrupt(c->from, "an entry is longer than its size says", err);
    c->left -= len;
    c->crc = crc32_gzip_refl(c->crc, data, len);
    return c->to.write(c->to.ctx, data, len, err);
}

static int inflate_step(struct unzip *z, uint64_t *stored, struct sink to, bool *ended,
                        struct error *err)
{
    struct inflate_state *s = z->inflate;
    int rc = *stored > 0 ? inflow_fill(&z->data, err) : 0;
    if (rc != 0)
        return rc;
    size_t had = inflow_left(&z->data) < *stored ? inflow_left(&z->data) : (size_t)*stored;
    s->next_in = z->data.buffer + z->data.at;
    s->avail_in = (uint32_t)had;
    s->next_out = z->out;
    s->avail_out = OUT_BYTES;
    int state = isal_inflate(s);
    size_t used = had - s->avail_in;
    size_t made = OUT_BYTES - s->avail_out;
    z->data.at += used;
    *stored -= used;
    *ended = s->block_state == ISAL_BLOCK_FINISH;
    if (state != ISAL_DECOMP_OK && state != ISAL_END_INPUT && state != ISAL_OUT_OVERFLOW)
        return inflow_corrupt(&z->data, "the compressed data is damaged", err);
    if (used == 0 && made == 0 && !*ended)
        return inflow_corrupt(&z->data, "the compressed data is cut short", err);
    return made > 0 ? to.write(to.ctx, z->out, made, err) : 0;
}

static int inflate_entry(struct unzip *z, struct sink to, struct error *err)
{
    uint64_t stored = z->entry.stored;
    bool ended = false;
    int rc = 0;
    isal_inflate_init(z->inflate);
    while (rc == 0 && !ended)
        rc = inflate_step(z, &stored, to, &ended, err);
    if (rc == 0 && stored > 0)
        rc = inflow_corrupt(&z->data, "something follows the compressed data", err);
    return rc;
}

/* The entry's bytes, of which size and sum are right. */
static int put_contents(struct unzip *z, struct sink to, struct error *err)
{
    const struct entry *e = &z->entry;
    struct checked c = {.from = &z->data, .to = to, .left = e->size};
    struct sink sink = {.write = checked_write, .ctx = &c};
    int rc = e->method == ZIP_STORED ? inflow_copy(&z->data, e->size, sink, err)
                                     : inflate_entry(z, sink, err);
    if (rc == 0 && (c.left != 0 || c.crc != e->crc))
        rc = inflow_corrupt(&z->data, "the entry that ends here has a wrong size or checksum", err);
    return rc;
}

/* To the first byte of the contents, past the entry's own header, which must say the same. */
static int open_entry(struct unzip *z, struct error *err)
{
    const struct entry *e = &z->entry;
    unsigned char r[ZIP_LOCAL];
    if (e->offset >= z->in->size)
        return zip_corrupt(z->in, e->offset, "an entry is beyond the end of the file", err);
    inflow_seek(&z->data, e->offset);
    int rc = inflow_get(&z->data, r, sizeof r, err);
    if (rc == 0)
        rc = get_buf(&z->data, zip_u16(r + 26), &z->own_name, err);
    if (rc != 0)
        return rc;
    bool same = zip_u32(r) == ZIP_SIG_LOCAL && zip_u16(r + 8) == e->method &&
                z->own_name.len == e->name.len &&
                memcmp(z->own_name.data, e->name.data, e->name.len) == 0;
    if (!same)
        return zip_corrupt(z->in, e->offset, "an entry is not what the directory says", err);
    uint64_t begin = inflow_offset(&z->data) + zip_u16(r + 28);
    if (begin > z->in->size || e->stored > z->in->size - begin)
        return zip_corrupt(z->in, e->offset, "an entry reaches past the end of the file", err);
    inflow_seek(&z->data, begin);
    return 0;
}

/* --- as a member ------------------------------------------------------------------------------ */

static char entry_type(const struct entry *e, uint32_t *mode)
{
    uint32_t unix_mode = e->host == ZIP_HOST_UNIX ? e->attributes >> 16 : 0;
    *mode = unix_mode != 0 ? unix_mode & 07777 : 0644;
    if (e->name.data[e->name.len - 1] == '/')
        return '5';
    switch (unix_mode & S_IFMT) {
    case 0:
    case S_IFREG:
        return '0';
    case S_IFDIR:
        return '5';
    case S_IFLNK:
        return '2';
    default:
        return '?';
    }
}

static int put_link(struct unzip *z, struct tar_made *m, struct error *err)
{
    _cleanup_(buf_done)
    struct buf link = BUF_INIT;
    if (m->size == 0 || m->size > LINK_MAX)
        return zip_unsupported(z->in, z->entry.offset,
                               "a symbolic link of more than 4096 bytes, or none", err);
    int rc = put_contents(z, sink_buf(&link), err);
    if (rc == 0 && memchr(link.data, '\0', link.len) != NULL)
        rc = zip_corrupt(z->in, z->entry.offset, "a symbolic link with a NUL in it", err);
    if (rc != 0)
        return rc;
    m->link = link.data;
    m->link_len = link.len;
    m->size = 0;
    tar_make_headers(&z->headers, m);
    return z->tar.write(z->tar.ctx, z->headers.data, z->headers.len, err);
}

static int put_file(struct unzip *z, const struct tar_made *m, struct error *err)
{
    tar_make_headers(&z->headers, m);
    int rc = z->tar.write(z->tar.ctx, z->headers.data, z->headers.len, err);
    if (rc == 0)
        rc = put_contents(z, z->tar, err);
    return rc != 0 ? rc : tar_put_padding(z->tar, m->size, err);
}

static int put_entry(struct unzip *z, struct error *err)
{
    const struct entry *e = &z->entry;
    struct tar_made m = {
        .path = e->name.data, .path_len = e->name.len, .size = e->size, .mtime = e->mtime};
    m.type = entry_type(e, &m.mode);
    buf_clear(&z->headers);
    switch (m.type) {
    case '?':
        return zip_unsupported(z->in, e->offset, "an entry that is no file, directory or link",
                               err);
    case '2':
        return put_link(z, &m, err);
    case '5':
        m.size = 0;
        tar_make_headers(&z->headers, &m);
        return z->tar.write(z->tar.ctx, z->headers.data, z->headers.len, err);
    default:
        return put_file(z, &m, err);
    }
}

static int unzip_all(struct unzip *z, struct error *err)
{
    struct zip_tail a = {0};
    int rc = find_end(z->in, &a, err);
    if (rc != 0)
        return rc;
    inflow_seek(&z->directory, a.begin);
    for (; rc == 0 && a.entries > 0; a.entries--) {
        uint64_t at = inflow_offset(&z->directory);
        rc = get_entry(z, err);
        if (rc == 0)
            rc = check_entry(z, at, err);
        if (rc == 0)
            rc = open_entry(z, err);
        if (rc == 0)
            rc = put_entry(z, err);
    }
    if (rc == 0 && inflow_offset(&z->directory) != a.end)
        rc = inflow_corrupt(&z->directory, "the central directory does not end where it should",
                            err);
    return rc != 0 ? rc : tar_put_end(z->tar, err);
}

static int zip_decode(const struct format_input *in, struct sink tar, struct error *err)
{
    struct unzip z = {
        .in = in, .tar = tar, .inflate = xcalloc(1, sizeof *z.inflate), .out = xmalloc(OUT_BYTES)};
    inflow_init(&z.directory, in);
    inflow_init(&z.data, in);
    int rc = unzip_all(&z, err);
    inflow_done(&z.directory);
    inflow_done(&z.data);
    buf_done(&z.entry.name);
    buf_done(&z.extra);
    buf_done(&z.own_name);
    buf_done(&z.headers);
    free(z.inflate);
    free(z.out);
    return rc;
}

const struct shard_format_ops format_zip = {
    .extensions = {".zip"},
    .content_type = "application/zip",
    .decode = zip_decode,
    .encoder_new = zip_encoder_new,
    .write = zip_encoder_write,
    .finish = zip_encoder_finish,
    .encoder_free = zip_encoder_free,
};
