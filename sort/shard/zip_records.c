/* The records of a zip: pure.  What needs more than 32 bits has a ZIP64 field besides. */
#include <sys/stat.h>
#include <time.h>

#include "common/utf8.h"
#include "sort/shard/zip.h"

#define WIDE_SIZE 0xff000000U /* contents from here on might exceed 32 bits when deflated */
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

static void add(struct buf *out, uint64_t value, unsigned width)
{
    unsigned char bytes[8];
    for (unsigned i = 0; i < width; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
    buf_append(out, bytes, width);
}

static bool is_wide(const struct zip_entry *e)
{
    return e->size >= WIDE_SIZE;
}

static bool has_descriptor(const struct zip_entry *e)
{
    return (e->flags & ZIP_FLAG_DESCRIPTOR) != 0;
}

static bool has_time(const struct zip_entry *e)
{
    return e->mtime >= INT32_MIN && e->mtime <= INT32_MAX;
}

static void add_time(struct buf *out, const struct zip_entry *e)
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

void zip_entry_begin(struct zip_entry *e, char type, uint32_t mode, int64_t mtime)
{
    e->attributes = ((type == '2' ? S_IFLNK : S_IFREG) | mode) << 16;
    e->dos_time = zip_time_to_dos(mtime);
    e->mtime = mtime;
    e->flags = utf8_valid(e->name, e->name_len) ? ZIP_FLAG_UTF8 : 0;
}

/* Sizes that follow the contents are 0 here; that they will be wide is said. */
void zip_put_local(struct buf *r, const struct zip_entry *e)
{
    const uint64_t size = has_descriptor(e) ? 0 : e->size,
                   stored = has_descriptor(e) ? 0 : e->stored;
    add(r, ZIP_SIG_LOCAL, 4);
    add(r, is_wide(e) ? VERSION_64 : VERSION, 2);
    add(r, e->flags, 2);
    add(r, e->method, 2);
    add(r, e->dos_time, 4);
    add(r, has_descriptor(e) ? 0 : e->crc, 4);
    add(r, is_wide(e) ? UINT32_MAX : stored, 4);
    add(r, is_wide(e) ? UINT32_MAX : size, 4);
    add(r, e->name_len, 2);
    add(r, (is_wide(e) ? 20 : 0) + (has_time(e) ? 9 : 0), 2);
    buf_append(r, e->name, e->name_len);
    if (is_wide(e)) {
        add(r, ZIP_EXTRA_64, 2);
        add(r, 16, 2);
        add(r, size, 8);
        add(r, stored, 8);
    }
    add_time(r, e);
}

void zip_put_descriptor(struct buf *r, const struct zip_entry *e)
{
    const unsigned width = is_wide(e) ? 8 : 4;
    if (!has_descriptor(e))
        return;
    add(r, ZIP_SIG_DESCRIPTOR, 4);
    add(r, e->crc, 4);
    add(r, e->stored, width);
    add(r, e->size, width);
}

/* What exceeds 32 bits stands in an extra field, in this order. */
static unsigned central_extra(const struct zip_entry *e, struct buf *out)
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

void zip_put_central(struct buf *r, const struct zip_entry *e)
{
    const unsigned extra = central_extra(e, NULL);
    const uint16_t version = extra > 0 || is_wide(e) ? VERSION_64 : VERSION;
    add(r, ZIP_SIG_CENTRAL, 4);
    add(r, (uint64_t)ZIP_HOST_UNIX << 8 | version, 2);
    add(r, version, 2);
    add(r, e->flags, 2);
    add(r, e->method, 2);
    add(r, e->dos_time, 4);
    add(r, e->crc, 4);
    add(r, clip(e->stored), 4);
    add(r, clip(e->size), 4);
    add(r, e->name_len, 2);
    add(r, extra + (has_time(e) ? 9 : 0), 2);
    add(r, 0, 2); /* comment */
    add(r, 0, 2); /* volume */
    add(r, 0, 2); /* internal attributes */
    add(r, e->attributes, 4);
    add(r, clip(e->offset), 4);
    buf_append(r, e->name, e->name_len);
    central_extra(e, r);
    add_time(r, e);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void add_end64(struct buf *r, const struct zip_end *end)
{
    add(r, ZIP_SIG_END64, 4);
    add(r, ZIP_END64 - 12, 8);
    add(r, (uint64_t)ZIP_HOST_UNIX << 8 | VERSION_64, 2);
    add(r, VERSION_64, 2);
    add(r, 0, 4);
    add(r, 0, 4);
    add(r, end->entries, 8);
    add(r, end->entries, 8);
    add(r, end->size, 8);
    add(r, end->begin, 8);
    add(r, ZIP_SIG_LOCATOR64, 4);
    add(r, 0, 4);
    add(r, end->begin + end->size, 8);
    add(r, 1, 4);
}

void zip_put_end(struct buf *r, const struct zip_end *end)
{
    const uint64_t entries = end->entries < UINT16_MAX ? end->entries : UINT16_MAX;
    if (end->entries >= UINT16_MAX || end->size >= UINT32_MAX || end->begin >= UINT32_MAX)
        add_end64(r, end);
    add(r, ZIP_SIG_END, 4);
    add(r, 0, 4);
    add(r, entries, 2);
    add(r, entries, 2);
    add(r, clip(end->size), 4);
    add(r, clip(end->begin), 4);
    add(r, end->comment_len, 2);
    buf_append(r, end->comment, end->comment_len);
}
