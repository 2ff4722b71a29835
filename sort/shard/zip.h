/* The records of a zip archive (PKWARE's APPNOTE 6.3.9), and its writing. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "sort/shard/format.h"

#define ZIP_SIG_LOCAL 0x04034b50U
#define ZIP_SIG_DESCRIPTOR 0x08074b50U
#define ZIP_SIG_CENTRAL 0x02014b50U
#define ZIP_SIG_END64 0x06064b50U
#define ZIP_SIG_LOCATOR64 0x07064b50U
#define ZIP_SIG_END 0x06054b50U

/* Bytes of each, without names and extra fields. */
#define ZIP_LOCAL 30
#define ZIP_CENTRAL 46
#define ZIP_END64 56
#define ZIP_LOCATOR64 20
#define ZIP_END 22

#define ZIP_EXTRA_64 0x0001
#define ZIP_EXTRA_TIME 0x5455 /* "UT": flags, seconds since 1970 */

#define ZIP_STORED 0
#define ZIP_DEFLATED 8
#define ZIP_HOST_UNIX 3
#define ZIP_FLAG_ENCRYPTED 0x0001
#define ZIP_FLAG_DESCRIPTOR 0x0008 /* sizes and sum stand behind the contents */
#define ZIP_FLAG_UTF8 0x0800
#define ZIP_FLAG_MASKED 0x2000

static inline uint16_t zip_u16(const unsigned char *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}
static inline uint32_t zip_u32(const unsigned char *at)
{
    return (uint32_t)zip_u16(at) | (uint32_t)zip_u16(at + 2) << 16;
}
static inline uint64_t zip_u64(const unsigned char *at)
{
    return zip_u32(at) | (uint64_t)zip_u32(at + 4) << 32;
}

/* DOS time (low half) and date (high half), as UTC, in steps of two seconds from 1980 to 2107: what
 * is outside becomes the nearest.  A date that makes no sense is read as its arithmetic says. */
uint32_t zip_time_to_dos(int64_t seconds);
int64_t zip_time_from_dos(uint32_t dos);

/* --- records (zip_records.c) ------------------------------------------------------------------ */

struct zip_entry {
    const char *name; /* at most UINT16_MAX bytes */
    size_t name_len;
    uint64_t offset, size, stored; /* of its first record, of its contents, of these in the file */
    uint32_t crc, attributes, dos_time;
    uint16_t flags, method;
    int64_t mtime;
};

struct zip_end {
    uint64_t entries;
    uint64_t begin, size; /* of the central directory */
    const char *comment;
    size_t comment_len;
};

/* Attributes, times and flags; type: '0' a file, '2' a symbolic link.  The entry has its name. */
void zip_entry_begin(struct zip_entry *e, char type, uint32_t mode, int64_t mtime);
/* Each appends one record.  With ZIP_FLAG_DESCRIPTOR sum and sizes stand in the descriptor, behind
 * the contents; else there is none, and the local record has them. */
void zip_put_local(struct buf *out, const struct zip_entry *e);
void zip_put_descriptor(struct buf *out, const struct zip_entry *e);
void zip_put_central(struct buf *out, const struct zip_entry *e);
void zip_put_end(struct buf *out, const struct zip_end *end);

/* --- writing (zip_write.c) -------------------------------------------------------------------- */

int zip_encoder_new(const struct format_output *out, void **encoder, struct error *err);
int zip_encoder_write(void *encoder, const void *tar, size_t len, struct error *err);
int zip_encoder_finish(void *encoder, struct error *err);
void zip_encoder_free(void *encoder);
