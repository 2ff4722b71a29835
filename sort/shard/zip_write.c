#include <string.h>
#include <zlib.h>

#include "common/mem.h"
#include "sort/base/blob.h"
#include "sort/shard/untar.h"
#include "sort/shard/zip.h"

#define OUT_BYTES 65536
#define LEVEL 6
#define DIRECTORY_MEMORY (256 * 1024) /* what is beyond goes to a work file */

struct zip {
    struct sink sink;
    uint64_t written;
    uint64_t entries;
    struct untar untar;
    struct zip_entry entry;
    struct buf name; /* of it */
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

/* --- entries ---------------------------------------------------------------------------------- */

static int put_record(struct zip *z, struct error *err)
{
    return put(z, z->record.data, z->record.len, err);
}

static int put_local(struct zip *z, struct error *err)
{
    buf_clear(&z->record);
    zip_put_local(&z->record, &z->entry);
    return put_record(z, err);
}

static int put_descriptor(struct zip *z, struct error *err)
{
    buf_clear(&z->record);
    zip_put_descriptor(&z->record, &z->entry);
    return z->record.len > 0 ? put_record(z, err) : 0;
}

static int keep_central(struct zip *z, struct error *err)
{
    buf_clear(&z->record);
    zip_put_central(&z->record, &z->entry);
    z->entries++;
    return blob_append(z->directory, z->record.data, z->record.len, err);
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
    struct zip_entry *e = &z->entry;
    int rc = check_member(m, err);
    if (rc != 0)
        return rc;
    bool is_link = m->type == '2';
    buf_clear(&z->name);
    buf_append(&z->name, m->path, m->path_len);
    *e = (struct zip_entry){.name = z->name.data,
                            .name_len = m->path_len,
                            .offset = z->written,
                            .size = is_link ? m->link_len : m->size};
    zip_entry_begin(e, m->type, m->mode, m->mtime);
    e->method = e->size > 0 ? ZIP_DEFLATED : ZIP_STORED;
    e->flags |= e->size > 0 ? ZIP_FLAG_DESCRIPTOR : 0;
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
    buf_done(&z->name);
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

int zip_encoder_finish(void *encoder, struct error *err)
{
    struct zip *z = encoder;
    if (!untar_between(&z->untar))
        return error_set(err, E_CORRUPT, "the records end within a member");
    const struct zip_end end = {
        .entries = z->entries, .begin = z->written, .size = blob_size(z->directory)};
    int rc = put_directory(z, err);
    buf_clear(&z->record);
    zip_put_end(&z->record, &end);
    return rc != 0 ? rc : put_record(z, err);
}
