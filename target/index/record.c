#include "target/index/record.h"

#include <limits.h>
#include <string.h>

#include "common/parse.h"
#include "target/format/codec.h"
#include "target/format/ec_manifest.h"

enum {
    FORMAT = 1,
    FLAG_TOMBSTONE = 1,
    FLAG_JOB = 2,
    FLAG_PENDING = 4,
    FLAG_SLICED = 8,
    FLAG_MD5 = 16,
    FLAG_PARTS = 32
};

enum { MD5_DIGITS = 32 };

/* Behind the MD5: "-N", or nothing. */
static bool read_parts(const char *text, unsigned *parts)
{
    uint64_t n = 0;
    bool is_count = *text == '-' && parse_u64(text + 1, &n, NULL) == 0 && n > 0 && n <= UINT_MAX;
    *parts = (unsigned)n;
    return *text == '\0' || is_count;
}

static void set_md5(const struct attr *a, struct index_record *rec)
{
    const char *tag = attr_meta_find(a, ATTR_MD5);
    char hex[MD5_DIGITS + 1] = "";
    struct checksum_value md5;
    unsigned parts;
    if (tag == NULL || strlen(tag) < MD5_DIGITS || !read_parts(tag + MD5_DIGITS, &parts))
        return;
    memcpy(hex, tag, MD5_DIGITS);
    if (checksum_parse(CHECKSUM_MD5, hex, &md5, NULL) != 0)
        return;
    rec->md5 = md5;
    rec->md5_parts = parts;
}

struct index_record index_record_of(const struct attr *a)
{
    struct attr shown = *a;
    (void)ec_manifest_show(&shown, NULL); /* one that is damaged: GET says so */
    struct index_record rec = {
        .size = shown.size,
        .version = a->version,
        .checksum = shown.checksum,
        .modified_ms = a->modified_ms,
        .job = a->job,
        .tombstone = attr_is_tombstone(a),
        .pending = attr_is_pending(a),
        .sliced = a->slices != NULL,
    };
    set_md5(a, &rec);
    return rec;
}

static unsigned flags_of(const struct index_record *rec)
{
    return (rec->tombstone ? FLAG_TOMBSTONE : 0) | (rec->job != NULL ? FLAG_JOB : 0) |
           (rec->pending ? FLAG_PENDING : 0) | (rec->sliced ? FLAG_SLICED : 0) |
           (rec->md5.type == CHECKSUM_MD5 ? FLAG_MD5 : 0) | (rec->md5_parts > 0 ? FLAG_PARTS : 0);
}

size_t index_record_encode(const struct index_record *rec,
                           unsigned char out[static INDEX_RECORD_MAX])
{
    unsigned char *at = out;
    unsigned flags = flags_of(rec);
    *at++ = FORMAT;
    *at++ = (unsigned char)flags;
    *at++ = (unsigned char)rec->checksum.type;
    at = codec_put_varint(at, rec->size);
    at = codec_put_version(at, &rec->version);
    at = codec_put_varint(at, (uint64_t)rec->modified_ms);
    at = codec_put_bytes(at, rec->checksum.bytes, checksum_size(rec->checksum.type));
    if (flags & FLAG_MD5)
        at = codec_put_bytes(at, rec->md5.bytes, checksum_size(CHECKSUM_MD5));
    if (flags & FLAG_PARTS)
        at = codec_put_varint(at, rec->md5_parts);
    if (rec->job != NULL)
        at = codec_put_text(at, rec->job);
    return (size_t)(at - out);
}

int index_record_decode(const void *data, size_t len, struct index_record *rec, struct error *err)
{
    struct codec_reader r = {.at = data, .end = (const unsigned char *)data + len};
    unsigned format = codec_get_u8(&r), flags = codec_get_u8(&r), type = codec_get_u8(&r);
    *rec = (struct index_record){.tombstone = (flags & FLAG_TOMBSTONE) != 0,
                                 .pending = (flags & FLAG_PENDING) != 0,
                                 .sliced = (flags & FLAG_SLICED) != 0};
    rec->size = codec_get_varint(&r);
    rec->version = codec_get_version(&r);
    rec->modified_ms = codec_get_time_ms(&r);
    codec_get_digest(&r, type, &rec->checksum);
    if (flags & FLAG_MD5)
        codec_get_digest(&r, CHECKSUM_MD5, &rec->md5);
    uint64_t parts = flags & FLAG_PARTS ? codec_get_varint(&r) : 0;
    rec->md5_parts = (unsigned)parts;
    if (flags & FLAG_JOB)
        rec->job = codec_get_text(&r, ATTR_JOB_MAX);
    if (r.failed || parts > UINT_MAX || r.at != r.end || format != FORMAT)
        return error_set(err, E_CORRUPT, "a record of the index is malformed");
    return 0;
}
