#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <zlib.h>

#include "common/mem.h"
#include "common/utf8.h"
#include "sort/base/blob.h"
#include "sort/shard/untar.h"
#include "sort/shard/zip.h"

#define OUT_BYTES 65536
#define LEVEL 6
#define DIRECTORY_MEMORY (256 * 1024) /* what is beyond goes to a work file */
#define WIDE_SIZE 0xff000000U         /* contents from here on might exceed 32 bits when deflated */
#define VERSION 20
#define VERSION_64 45
#define DOS_FIRST 315532800 /* 1980-01-01 */
#define DOS_LAST 4354819198 /* 2107-12-31 23:59:58 */

uint32_t zip_time_to_dos(int64_t seconds)
{
    if (seconds < DOS_FIRST)
        seconds = DOS_FIRST;
    if (seconds > DOS_LAST)
        seconds = DOS_LAST;
    time_t when = seconds;
    struct tm t;
    gmtime_r(&when, &t);
    uint32_t time = (uint32_t)(t.tm_hour << 11 | t.tm_min << 5 | t.tm_sec / 2);
    uint32_t date = (uint32_t)((t.tm_year - 80) << 9 | (t.tm_mon + 1) << 5 | t.tm_mday);
    return date << 16 | time;
}

int64_t zip_time_from_dos(uint32_t dos)
{
    struct tm t = {
        .tm_year = (int)(dos >> 25) + 80,
        .tm_mon = (int)(dos >> 21 & 15) - 1,
        .tm_mday = (int)(dos >> 16 & 31),
        .tm_hour = (int)(dos >> 11 & 31),
        .tm_min = (int)(dos >> 5 & 63),
        .tm_sec = (int)(dos & 31) * 2,
    };
    return timegm(&t);
}

struct entry {
    struct buf name;
    uint64_t offset, size, stored;
    uint32_t crc, attributes, dos_time;
    uint16_t flags, method;
    int64_t mtime;
};

struct zip {
    struct sink sink;
    uint64_t written;
    uint64_t entries;
    struct untar untar;
    struct entry entry;
    z_stream deflate;
    struct blob *directory;
    struct buf record;
    unsigned char out[OUT_BYTES];
};

static int put(struct zip *z, const void *data, size_t len, struct error *err)
{
    z->written += len;
    return z->sink.write(z->sink.ctx, data, len, err);
}

static void add(struct buf *out, uint64_t value, unsigned width)
{
    unsigned char bytes[8];
    for (unsigned i = 0; i < width; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
    buf_append(out, bytes, width);
}

static bool is_wide(const struct entry *e)
{
    return e->size >= WIDE_SIZE;
}

static bool has_time(const struct entry *e)
{
    return e->mtime >= INT32_MIN && e->mtime <= INT32_MAX;
}

static void add_time(struct buf *out, const struct entry *e)
{
    if (!has_time(e))
        return;
    add(out, ZIP_EXTRA_TIME, 2);
    add(out, 5, 2);
    add(out, 1, 1);
    add(out, (uint64_t)e->mtime, 4);
}

static uint64_t clip(uint64_t value)
{
    return value < UINT32_MAX ? value : UINT32_MAX;
}

/* --- entries ---------------------------------------------------------------------------------- */

static int put_local(struct zip *z, struct error *err)
{
    const struct entry *e = &z->entry;
    struct buf *r = &z->record;
    buf_clear(r);
    add(r, ZIP_SIG_LOCAL, 4);
    add(r, is_wide(e) ? VERSION_64 : VERSION, 2);
    add(r, e->flags, 2);
    add(r, e->method, 2);
    add(r, e->dos_time, 4);
    add(r, 0, 4);
    add(r, is_wide(e) ? UINT32_MAX : 0, 4);
    add(r, is_wide(e) ? UINT32_MAX : 0, 4);
    add(r, e->name.len, 2);
    add(r, (is_wide(e) ? 20 : 0) + (has_time(e) ? 9 : 0), 2);
    buf_append(r, e->name.data, e->name.len);
    if (is_wide(e)) { /* the sizes follow the contents; that they will be wide is said here */
        add(r, ZIP_EXTRA_64, 2);
        add(r, 16, 2);
        add(r, 0, 8);
        add(r, 0, 8);
    }
    add_time(r, e);
    return put(z, r->data, r->len, err);
}

static int put_descriptor(struct zip *z, struct error *err)
{
    const struct entry *e = &z->entry;
    struct buf *r = &z->record;
    if ((e->flags & ZIP_FLAG_DESCRIPTOR) == 0)
        return 0;
    unsigned width = is_wide(e) ? 8 : 4;
    buf_clear(r);
    add(r, ZIP_SIG_DESCRIPTOR, 4);
    add(r, e->crc, 4);
    add(r, e->stored, width);
    add(r, e->size, width);
    return put(z, r->data, r->len, err);
}

/* What exceeds 32 bits stands in an extra field, in this order. */
static unsigned central_extra(const struct entry *e, struct buf *out)
{
    const uint64_t fields[] = {e->size, e->stored, e->offset};
    unsigned wide = 0;
    for (unsigned i = 0; i < 3; i++)
        wide += fields[i] >= UINT32_MAX;
    if (wide > 0 && out != NULL) {
        add(out, ZIP_EXTRA_64, 2);
        add(out, 8 * wide, 2);
        for (unsigned i = 0; i < 3; i++) {
            if (fields[i] >= UINT32_MAX)
                add(out, fields[i], 8);
        }
    }
    return wide > 0 ? 4 + 8 * wide : 0;
}

static int keep_central(struct zip *z, struct error *err)
{
    const struct entry *e = &z->entry;
    struct buf *r = &z->record;
    unsigned extra = central_extra(e, NULL);
    uint16_t version = extra > 0 || is_wide(e) ? VERSION_64 : VERSION;
    buf_clear(r);
    add(r, ZIP_SIG_CENTRAL, 4);
    add(r, (uint64_t)ZIP_HOST_UNIX << 8 | version, 2);
    add(r, version, 2);
    add(r, e->flags, 2);
    add(r, e->method, 2);
    add(r, e->dos_time, 4);
    add(r, e->crc, 4);
    add(r, clip(e->stored), 4);
    add(r, clip(e->size), 4);
    add(r, e->name.len, 2);
    add(r, extra + (has_time(e) ? 9 : 0), 2);
    add(r, 0, 2); /* comment */
    add(r, 0, 2); /* volume */
    add(r, 0, 2); /* internal attributes */
    add(r, e->attributes, 4);
    add(r, clip(e->offset), 4);
    buf_append(r, e->name.data, e->name.len);
    central_extra(e, r);
    add_time(r, e);
    z->entries++;
    return blob_append(z->directory, r->data, r->len, err);
}

static int deflate_run(struct zip *z, const void *data, size_t len, int flush, struct error *err)
{
    z->deflate.next_in = (unsigned char *)data;
    z->deflate.avail_in = (unsigned)len;
    int state;
    do {
        z->deflate.next_out = z->out;
        z->deflate.avail_out = OUT_BYTES;
        state = deflate(&z->deflate, flush);
        size_t made = OUT_BYTES - z->deflate.avail_out;
        z->entry.stored += made;
        int rc = made > 0 ? put(z, z->out, made, err) : 0;
        if (rc != 0)
            return rc;
    } while (z->deflate.avail_out == 0 || (flush == Z_FINISH && state == Z_OK));
    return 0;
}

/* --- members ---------------------------------------------------------------------------------- */

static int unsupported(const struct untar_member *m, const char *why, struct error *err)
{
    return error_set(err, E_SHARD_UNSUPPORTED, "member '%.*s' cannot be in a zip: %s",
                     (int)(m->path_len < 256 ? m->path_len : 256), m->path, why);
}

static int check_member(const struct untar_member *m, struct error *err)
{
    if (m->type == '1')
        return unsupported(m, "it is a hard link", err);
    if (m->type >= '3' && m->type <= '6')
        return unsupported(m, "it is a device, a pipe or a directory", err);
    if (m->path_len > UINT16_MAX)
        return unsupported(m, "its name is too long", err);
    if (m->path[m->path_len - 1] == '/')
        return unsupported(m, "its name is a directory's", err);
    return 0;
}

static int on_data(void *ctx, const void *data, size_t len, struct error *err)
{
    struct zip *z = ctx;
    z->entry.crc = (uint32_t)crc32_z(z->entry.crc, data, len);
    return deflate_run(z, data, len, Z_NO_FLUSH, err);
}

static int on_begin(void *ctx, const struct untar_member *m, struct error *err)
{
    struct zip *z = ctx;
    struct entry *e = &z->entry;
    int rc = check_member(m, err);
    if (rc != 0)
        return rc;
    bool is_link = m->type == '2';
    buf_clear(&e->name);
    buf_append(&e->name, m->path, m->path_len);
    e->offset = z->written;
    e->size = is_link ? m->link_len : m->size;
    e->stored = e->crc = 0;
    e->attributes = ((is_link ? S_IFLNK : S_IFREG) | m->mode) << 16;
    e->dos_time = zip_time_to_dos(m->mtime);
    e->mtime = m->mtime;
    e->method = e->size > 0 ? ZIP_DEFLATED : ZIP_STORED;
    e->flags = (uint16_t)((e->size > 0 ? ZIP_FLAG_DESCRIPTOR : 0) |
                          (utf8_valid(m->path, m->path_len) ? ZIP_FLAG_UTF8 : 0));
    deflateReset(&z->deflate);
    rc = put_local(z, err);
    return rc == 0 && is_link && e->size > 0 ? on_data(z, m->link, m->link_len, err) : rc;
}

static int on_end(void *ctx, struct error *err)
{
    struct zip *z = ctx;
    int rc = z->entry.size > 0 ? deflate_run(z, NULL, 0, Z_FINISH, err) : 0;
    if (rc == 0)
        rc = put_descriptor(z, err);
    return rc != 0 ? rc : keep_central(z, err);
}

static const struct untar_events events = {.begin = on_begin, .data = on_data, .end = on_end};

/* --- the archive ------------------------------------------------------------------------------ */

int zip_encoder_new(const struct format_output *out, void **encoder, struct error *err)
{
    struct zip *z = xcalloc(1, sizeof *z);
    z->sink = out->sink;
    if (deflateInit2(&z->deflate, LEVEL, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        free(z);
        return error_set(err, E_NOMEM, "no memory to compress with");
    }
    z->directory = blob_new(out->env, DIRECTORY_MEMORY);
    untar_init(&z->untar, &events, z);
    *encoder = z;
    return 0;
}

void zip_encoder_free(void *encoder)
{
    struct zip *z = encoder;
    deflateEnd(&z->deflate);
    blob_free(z->directory);
    untar_done(&z->untar);
    buf_done(&z->entry.name);
    buf_done(&z->record);
    free(z);
}

int zip_encoder_write(void *encoder, const void *tar, size_t len, struct error *err)
{
    struct zip *z = encoder;
    return untar_write(&z->untar, tar, len, err);
}

static int put_directory(struct zip *z, struct error *err)
{
    uint64_t end = blob_size(z->directory);
    int rc = 0;
    for (uint64_t at = 0; rc == 0 && at < end;) {
        size_t n = end - at < OUT_BYTES ? (size_t)(end - at) : OUT_BYTES;
        rc = blob_read(z->directory, at, z->out, n, err);
        if (rc == 0)
            rc = put(z, z->out, n, err);
        at += n;
    }
    return rc;
}

static void add_end64(const struct zip *z, struct buf *r, uint64_t begin, uint64_t size)
{
    add(r, ZIP_SIG_END64, 4);
    add(r, ZIP_END64 - 12, 8);
    add(r, (uint64_t)ZIP_HOST_UNIX << 8 | VERSION_64, 2);
    add(r, VERSION_64, 2);
    add(r, 0, 4);
    add(r, 0, 4);
    add(r, z->entries, 8);
    add(r, z->entries, 8);
    add(r, size, 8);
    add(r, begin, 8);
    add(r, ZIP_SIG_LOCATOR64, 4);
    add(r, 0, 4);
    add(r, begin + size, 8);
    add(r, 1, 4);
}

int zip_encoder_finish(void *encoder, struct error *err)
{
    struct zip *z = encoder;
    if (!untar_between(&z->untar))
        return error_set(err, E_CORRUPT, "the records end within a member");
    uint64_t begin = z->written;
    uint64_t size = blob_size(z->directory);
    struct buf *r = &z->record;
    int rc = put_directory(z, err);
    buf_clear(r);
    if (z->entries >= UINT16_MAX || size >= UINT32_MAX || begin >= UINT32_MAX)
        add_end64(z, r, begin, size);
    uint64_t entries = z->entries < UINT16_MAX ? z->entries : UINT16_MAX;
    add(r, ZIP_SIG_END, 4);
    add(r, 0, 4);
    add(r, entries, 2);
    add(r, entries, 2);
    add(r, clip(size), 4);
    add(r, clip(begin), 4);
    add(r, 0, 2); /* comment */
    return rc != 0 ? rc : put(z, r->data, r->len, err);
}
