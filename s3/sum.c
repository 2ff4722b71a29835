#include "s3/sum.h"

#include <assert.h>
#include <isa-l/crc.h>
#include <openssl/evp.h>
#include <string.h>
#include <strings.h>

#include "common/mem.h"
#include "s3/crc64.h"

#define PREFIX "x-amz-checksum-"

struct s3_sum {
    enum s3_sum_type type;
    struct checksum *common; /* one of these three */
    EVP_MD_CTX *sha1;
    uint64_t crc;
};

static uint64_t crc32_ieee_of(uint64_t crc, const void *data, size_t len)
{
    return crc32_gzip_refl((uint32_t)crc, data, len);
}

/* Every type is a row.  A type that common/checksum.h has is computed there; of the others one
 * without `crc` is SHA-1. */
static const struct row {
    const char *algorithm, *header;
    size_t size;
    enum checksum_type common;
    uint64_t (*crc)(uint64_t crc, const void *data, size_t len);
} rows[S3_SUM_TYPES] = {
    [S3_SUM_CRC32] = {"CRC32", PREFIX "crc32", 4, CHECKSUM_NONE, crc32_ieee_of},
    [S3_SUM_CRC32C] = {"CRC32C", PREFIX "crc32c", 4, CHECKSUM_CRC32C, NULL},
    [S3_SUM_CRC64NVME] = {"CRC64NVME", PREFIX "crc64nvme", 8, CHECKSUM_NONE, crc64_nvme},
    [S3_SUM_SHA1] = {"SHA1", PREFIX "sha1", 20, CHECKSUM_NONE, NULL},
    [S3_SUM_SHA256] = {"SHA256", PREFIX "sha256", 32, CHECKSUM_SHA256, NULL},
};

const char *s3_sum_algorithm(enum s3_sum_type type)
{
    return rows[type].algorithm;
}

const char *s3_sum_header(enum s3_sum_type type)
{
    return rows[type].header;
}

/* --- computing -------------------------------------------------------------------------------- */

struct s3_sum *s3_sum_new(enum s3_sum_type type)
{
    struct s3_sum *s = xcalloc(1, sizeof *s);
    s->type = type;
    if (rows[type].common != CHECKSUM_NONE) {
        s->common = checksum_new(rows[type].common);
    } else if (rows[type].crc == NULL) {
        s->sha1 = EVP_MD_CTX_new();
        int ok = s->sha1 != NULL && EVP_DigestInit_ex(s->sha1, EVP_sha1(), NULL);
        assert(ok); /* it is in the default provider */
    }
    return s;
}

void s3_sum_update(struct s3_sum *s, const void *data, size_t len)
{
    if (len == 0)
        return;
    if (s->common != NULL) {
        checksum_update(s->common, data, len);
    } else if (s->sha1 != NULL) {
        int ok = EVP_DigestUpdate(s->sha1, data, len);
        assert(ok);
    } else {
        s->crc = rows[s->type].crc(s->crc, data, len);
    }
}

void s3_sum_final(struct s3_sum *s, struct s3_sum_value *out)
{
    size_t size = rows[s->type].size;
    struct checksum_value value;
    *out = (struct s3_sum_value){.type = s->type};
    if (s->common != NULL) {
        checksum_final(s->common, &value);
        memcpy(out->bytes, value.bytes, size);
    } else if (s->sha1 != NULL) {
        int ok = EVP_DigestFinal_ex(s->sha1, out->bytes, NULL);
        assert(ok);
    } else {
        for (size_t i = 0; i < size; i++)
            out->bytes[i] = (unsigned char)(s->crc >> (8 * (size - 1 - i)));
    }
}

void s3_sum_free(struct s3_sum *s)
{
    if (s == NULL)
        return;
    checksum_free(s->common);
    EVP_MD_CTX_free(s->sha1);
    free(s);
}

/* --- texts ------------------------------------------------------------------------------------ */

size_t s3_sum_size(enum s3_sum_type type)
{
    return rows[type].size;
}

bool s3_sum_parse(enum s3_sum_type type, const char *base64, struct s3_sum_value *out)
{
    unsigned char bytes[S3_SUM_BASE64_MAX];
    char again[S3_SUM_BASE64_MAX];
    size_t len = strlen(base64), size = rows[type].size;
    *out = (struct s3_sum_value){.type = type};
    if (len != (size + 2) / 3 * 4 ||
        EVP_DecodeBlock(bytes, (const unsigned char *)base64, (int)len) < (int)size)
        return false;
    memcpy(out->bytes, bytes, size);
    return strcmp(s3_sum_print(out, again), base64) == 0;
}

const char *s3_sum_print(const struct s3_sum_value *v, char out[static S3_SUM_BASE64_MAX])
{
    EVP_EncodeBlock((unsigned char *)out, v->bytes, (int)rows[v->type].size);
    return out;
}

bool s3_sum_equal(const struct s3_sum_value *a, const struct s3_sum_value *b)
{
    return a->type == b->type && memcmp(a->bytes, b->bytes, rows[a->type].size) == 0;
}

/* --- what a request asks ---------------------------------------------------------------------- */

/* S3_SUM_TYPES: none has this header. */
static enum s3_sum_type type_of_header(const char *name)
{
    enum s3_sum_type type = 0;
    while (type < S3_SUM_TYPES && strcasecmp(rows[type].header, name) != 0)
        type++;
    return type;
}

/* Headers of the prefix that are no checksum. */
static bool is_about_sums(const char *name)
{
    static const char *const names[] = {PREFIX "algorithm", PREFIX "type", PREFIX "mode"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcasecmp(names[i], name) == 0)
            return true;
    }
    return false;
}

static enum s3_error take(const char *name, const char *value, struct s3_sum_asked *out,
                          struct s3_failure *why)
{
    enum s3_sum_type type = type_of_header(name);
    if (type == S3_SUM_TYPES)
        return s3_fail(why, S3_INVALID_REQUEST, "The checksum %.64s is not known", name);
    if (out->is_asked)
        return s3_fail(why, S3_INVALID_REQUEST, "A request has one x-amz-checksum-* at most");
    out->is_asked = true;
    out->is_in_trailer = value == NULL;
    out->value.type = type;
    if (value != NULL && !s3_sum_parse(type, value, &out->value))
        return s3_fail(why, S3_INVALID_REQUEST, "The value of %s is not valid", rows[type].header);
    return S3_OK;
}

static bool is_sum(const char *name)
{
    return strncasecmp(name, PREFIX, strlen(PREFIX)) == 0 && !is_about_sums(name);
}

static enum s3_error take_trailers(const char *names, struct s3_sum_asked *out,
                                   struct s3_failure *why)
{
    _cleanup_free_ char *rest = xstrdup(names);
    char *save = NULL;
    enum s3_error e = S3_OK;
    for (char *name = strtok_r(rest, ", \t", &save); name != NULL && e == S3_OK;
         name = strtok_r(NULL, ", \t", &save)) {
        if (is_sum(name))
            e = take(name, NULL, out, why);
    }
    return e;
}

enum s3_error s3_sum_asked(const struct s3_request *r, struct s3_sum_asked *out,
                           struct s3_failure *why)
{
    const char *trailers = s3_header(r, "x-amz-trailer");
    const char *algorithm = s3_header(r, "x-amz-sdk-checksum-algorithm");
    enum s3_error e = S3_OK;
    *out = (struct s3_sum_asked){.is_asked = false};
    for (size_t i = 0; i < r->header_count && e == S3_OK; i++) {
        if (is_sum(r->headers[i].name))
            e = take(r->headers[i].name, r->headers[i].value, out, why);
    }
    if (e == S3_OK && trailers != NULL)
        e = take_trailers(trailers, out, why);
    if (e != S3_OK || algorithm == NULL)
        return e;
    if (!out->is_asked || strcasecmp(algorithm, rows[out->value.type].algorithm) != 0)
        return s3_fail(why, S3_INVALID_REQUEST,
                       "x-amz-sdk-checksum-algorithm is not that of the request's checksum");
    return S3_OK;
}

enum s3_error s3_sum_content_md5(const struct s3_request *r, struct checksum_value *out,
                                 struct s3_failure *why)
{
    const char *text = s3_header(r, "content-md5");
    *out = (struct checksum_value){.type = CHECKSUM_NONE};
    if (text != NULL && !checksum_parse_base64(CHECKSUM_MD5, text, out))
        return s3_fail(why, S3_INVALID_DIGEST, NULL);
    return S3_OK;
}
