#include "s3/uploads/complete_body.h"

#include <string.h>

#include "common/parse.h"
#include "s3/document.h"

/* "<Part/>" has so many bytes, so that a body of a length has no more parts than this allows. */
enum { PART_BYTES_MIN = 7 };

struct reading {
    struct arena *arena;
    struct s3_part *parts;
    struct s3_part now; /* the <Part> that is read; number 0: none yet */
    size_t count, max;
};

static enum s3_error take_number(void *ctx, const char *text, struct s3_failure *why)
{
    struct reading *r = ctx;
    uint64_t number;
    if (r->now.number != 0 || parse_u64(text, &number, NULL) != 0)
        return s3_fail(why, S3_MALFORMED_XML, NULL);
    if (number == 0 || number > S3_PARTS_MAX)
        return s3_fail(why, S3_INVALID_PART, "A part's number is 1 to %d", S3_PARTS_MAX);
    r->now.number = (unsigned)number;
    return S3_OK;
}

static enum s3_error take_etag(void *ctx, const char *text, struct s3_failure *why)
{
    struct reading *r = ctx;
    if (r->now.etag != NULL)
        return s3_fail(why, S3_MALFORMED_XML, NULL);
    r->now.etag = arena_strdup(r->arena, text);
    return S3_OK;
}

static enum s3_error take_sum(struct reading *r, enum s3_sum_type type, const char *text,
                              struct s3_failure *why)
{
    if (r->now.has_sum || !s3_sum_parse(type, text, &r->now.sum))
        return s3_fail(why, S3_INVALID_REQUEST, "A part's checksum is not valid, or is twice");
    r->now.has_sum = true;
    return S3_OK;
}

#define TAKE_SUM(function, type)                                                       \
    static enum s3_error function(void *ctx, const char *text, struct s3_failure *why) \
    {                                                                                  \
        return take_sum(ctx, type, text, why);                                         \
    }
TAKE_SUM(take_crc32, S3_SUM_CRC32)
TAKE_SUM(take_crc32c, S3_SUM_CRC32C)
TAKE_SUM(take_crc64nvme, S3_SUM_CRC64NVME)
TAKE_SUM(take_sha1, S3_SUM_SHA1)
TAKE_SUM(take_sha256, S3_SUM_SHA256)

static enum s3_error end_part(void *ctx, const char *name, struct s3_failure *why)
{
    struct reading *r = ctx;
    (void)name; /* there is nothing but parts on this level */
    if (r->now.number == 0 || r->now.etag == NULL)
        return s3_fail(why, S3_MALFORMED_XML, "A <Part> needs <PartNumber> and <ETag>");
    if (r->count > 0 && r->parts[r->count - 1].number >= r->now.number)
        return s3_fail(why, S3_INVALID_PART_ORDER, NULL);
    if (r->count == r->max)
        return s3_fail(why, S3_MALFORMED_XML, NULL);
    r->parts[r->count++] = r->now;
    r->now = (struct s3_part){.number = 0};
    return S3_OK;
}

static const struct document_leaf leaves[] = {
    {"Part", "PartNumber", take_number},           {"Part", "ETag", take_etag},
    {"Part", "ChecksumCRC32", take_crc32},         {"Part", "ChecksumCRC32C", take_crc32c},
    {"Part", "ChecksumCRC64NVME", take_crc64nvme}, {"Part", "ChecksumSHA1", take_sha1},
    {"Part", "ChecksumSHA256", take_sha256},       {.name = NULL},
};

static const struct document document = {
    .root = "CompleteMultipartUpload", .depth = 3, .leaves = leaves, .leave = end_part};

enum s3_error s3_complete_parse(const char *body, size_t len, struct arena *arena,
                                struct s3_complete *out, struct s3_failure *why)
{
    size_t max = len / PART_BYTES_MIN < S3_PARTS_MAX ? len / PART_BYTES_MIN : S3_PARTS_MAX;
    struct reading r = {
        .arena = arena, .parts = arena_alloc(arena, max * sizeof r.parts[0]), .max = max};
    enum s3_error e = document_read(&document, body, len, &r, why);
    if (e == S3_OK && r.count == 0)
        e = s3_fail(why, S3_MALFORMED_XML, "The document names no part");
    *out = (struct s3_complete){.parts = r.parts, .count = r.count};
    return e;
}
