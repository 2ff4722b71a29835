#include "target/index/record.h"

#include "target/format/codec.h"
#include "target/format/ec_manifest.h"

enum {
    FORMAT = 1,
    FLAG_TOMBSTONE = 1,
    FLAG_JOB = 2,
    FLAG_PENDING = 4,
    FLAG_SLICED = 8,
    FLAG_MD5 = 16
};

static struct checksum_value md5_of(const struct attr *a)
{
    const struct checksum_value none = {.type = CHECKSUM_NONE};
    struct checksum_value md5;
    const char *hex = attr_meta_find(a, ATTR_MD5);
    return hex != NULL && checksum_parse(CHECKSUM_MD5, hex, &md5, NULL) == 0 ? md5 : none;
}

struct index_record index_record_of(const struct attr *a)
{
    struct attr shown = *a;
    (void)ec_manifest_show(&shown, NULL); /* one that is damaged: GET says so */
    return (struct index_record){
        .size = shown.size,
        .version = a->version,
        .checksum = shown.checksum,
        .md5 = md5_of(a),
        .modified_ms = a->modified_ms,
        .job = a->job,
        .tombstone = attr_is_tombstone(a),
        .pending = attr_is_pending(a),
        .sliced = a->slices != NULL,
    };
}

size_t index_record_encode(const struct index_record *rec,
                           unsigned char out[static INDEX_RECORD_MAX])
{
    unsigned char *at = out;
    bool has_md5 = rec->md5.type == CHECKSUM_MD5;
    *at++ = FORMAT;
    *at++ = (unsigned char)((rec->tombstone ? FLAG_TOMBSTONE : 0) |
                            (rec->job != NULL ? FLAG_JOB : 0) | (rec->pending ? FLAG_PENDING : 0) |
                            (rec->sliced ? FLAG_SLICED : 0) | (has_md5 ? FLAG_MD5 : 0));
    *at++ = (unsigned char)rec->checksum.type;
    at = codec_put_varint(at, rec->size);
    at = codec_put_version(at, &rec->version);
    at = codec_put_varint(at, (uint64_t)rec->modified_ms);
    at = codec_put_bytes(at, rec->checksum.bytes, checksum_size(rec->checksum.type));
    if (has_md5)
        at = codec_put_bytes(at, rec->md5.bytes, checksum_size(CHECKSUM_MD5));
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
    if (flags & FLAG_JOB)
        rec->job = codec_get_text(&r, ATTR_JOB_MAX);
    if (r.failed || r.at != r.end || format != FORMAT)
        return error_set(err, E_CORRUPT, "a record of the index is malformed");
    return 0;
}
