#include "sort/shard/tar_make.h"

#include <stdio.h>
#include <string.h>

#include "sort/shard/tar_header.h"

#define OCTAL_MAX ((INT64_C(1) << 33) - 1) /* eleven digits */
#define TEXT_MAX 100

static const char zeros[2 * TAR_BLOCK];

/* "27 key=value\n", the length counting itself. */
static void put_record(struct buf *out, const char *key, const char *value, size_t len)
{
    size_t rest = strlen(key) + len + 3;
    size_t whole = rest + 1;
    char digits[24];
    while (rest + (size_t)snprintf(digits, sizeof digits, "%zu", whole) != whole)
        whole++;
    buf_printf(out, "%zu %s=", whole, key);
    buf_append(out, value, len);
    buf_putc(out, '\n');
}

static void put_number(struct buf *out, const char *key, int64_t value)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%lld", (long long)value);
    put_record(out, key, text, (size_t)len);
}

static bool is_octal(int64_t value)
{
    return value >= 0 && value <= OCTAL_MAX;
}

static void put_extended(struct buf *out, const struct tar_made *m)
{
    _cleanup_(buf_done)
    struct buf records = BUF_INIT;
    if (m->path_len > TEXT_MAX)
        put_record(&records, "path", m->path, m->path_len);
    if (m->link_len > TEXT_MAX)
        put_record(&records, "linkpath", m->link, m->link_len);
    if (m->size > OCTAL_MAX)
        put_number(&records, "size", (int64_t)m->size);
    if (!is_octal(m->mtime))
        put_number(&records, "mtime", m->mtime);
    if (records.len == 0)
        return;
    unsigned char block[TAR_BLOCK];
    tar_header_make_pax(block, records.len);
    buf_append(out, block, sizeof block);
    buf_append(out, records.data, records.len);
    buf_append(out, zeros, (size_t)tar_padded(records.len) - records.len);
}

void tar_make_headers(struct buf *out, const struct tar_made *m)
{
    put_extended(out, m);
    struct tar_fields f = {
        .name = m->path,
        .name_len = m->path_len < TEXT_MAX ? m->path_len : TEXT_MAX,
        .link = m->link,
        .link_len = m->link_len < TEXT_MAX ? m->link_len : TEXT_MAX,
        .type = m->type,
        .mode = m->mode & 07777,
        .size = m->size <= OCTAL_MAX ? m->size : 0,
        .mtime = is_octal(m->mtime) ? (uint64_t)m->mtime : 0,
    };
    unsigned char block[TAR_BLOCK];
    tar_header_make(block, &f);
    buf_append(out, block, sizeof block);
}

int tar_put_padding(struct sink tar, uint64_t size, struct error *err)
{
    size_t n = (size_t)(tar_padded(size) - size);
    return n > 0 ? tar.write(tar.ctx, zeros, n, err) : 0;
}

int tar_put_end(struct sink tar, struct error *err)
{
    return tar.write(tar.ctx, zeros, sizeof zeros, err);
}
