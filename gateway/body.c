#include "gateway/body.h"

#include <string.h>

#include "common/mem.h"
#include "common/parse.h"
#include "s3/chunked.h"

#define PUT_MAX ((uint64_t)5 << 30)

struct body {
    uint64_t length, given;
    struct s3_chunked *chunked; /* NULL: the body is the object's bytes */
    struct s3_sum *digest;      /* x-amz-content-sha256; NULL: none */
    struct s3_sum_value digest_wanted;
    struct s3_sum *sum; /* x-amz-checksum-…; NULL: none */
    struct s3_sum_asked asked;
    size_t ready; /* decoded, and not taken by the sink */
};

static bool is_chunked(enum s3_payload payload)
{
    return payload >= S3_PAYLOAD_CHUNKS_SIGNED;
}

/* --- what the headers say --------------------------------------------------------------------- */

static enum s3_error read_length(const struct gateway_call *call, int64_t length, uint64_t *out,
                                 struct s3_failure *why)
{
    const char *text = s3_header(&call->head, "x-amz-decoded-content-length");
    if (!is_chunked(call->credential.payload)) {
        if (length < 0)
            return s3_fail(why, S3_MISSING_LENGTH, NULL);
        *out = (uint64_t)length;
    } else if (text == NULL) {
        return s3_fail(why, S3_MISSING_LENGTH, "x-amz-decoded-content-length is missing");
    } else if (parse_u64(text, out, NULL) != 0) {
        return s3_fail(why, S3_INVALID_ARGUMENT, "x-amz-decoded-content-length is no length");
    }
    return *out <= PUT_MAX ? S3_OK : s3_fail(why, S3_ENTITY_TOO_LARGE, NULL);
}

static enum s3_error begin_chunks(struct body *b, const struct gateway_call *call,
                                  struct s3_failure *why)
{
    struct s3_chunked_spec spec = {.credential = &call->credential,
                                   .decoded_length = b->length,
                                   .trailers = s3_header(&call->head, "x-amz-trailer"),
                                   .has_no_key = !call->has_key};
    if (!is_chunked(call->credential.payload))
        return S3_OK;
    memcpy(spec.key, call->signing_key, sizeof spec.key);
    return s3_chunked_new(&spec, &b->chunked, why);
}

static bool read_hex(const char *text, struct s3_sum_value *out)
{
    struct checksum_value v;
    if (checksum_parse(CHECKSUM_SHA256, text, &v, NULL) != 0)
        return false;
    out->type = S3_SUM_SHA256;
    memcpy(out->bytes, v.bytes, 32);
    return true;
}

static enum s3_error begin_digest(struct body *b, const struct gateway_call *call,
                                  struct s3_failure *why)
{
    if (call->credential.payload != S3_PAYLOAD_DIGEST)
        return S3_OK;
    if (!read_hex(call->credential.payload_text, &b->digest_wanted))
        return s3_fail(why, S3_INVALID_ARGUMENT, "x-amz-content-sha256 is no SHA-256");
    b->digest = s3_sum_new(S3_SUM_SHA256);
    return S3_OK;
}

/* That of a completion is the object's, not that of the document. */
static enum s3_error begin_sum(struct body *b, const struct gateway_call *call,
                               struct s3_failure *why)
{
    if (call->s3.op == S3_OP_CompleteMultipartUpload)
        return S3_OK;
    enum s3_error e = s3_sum_asked(&call->head, &b->asked, why);
    if (e != S3_OK || !b->asked.is_asked)
        return e;
    if (b->asked.is_in_trailer && b->chunked == NULL)
        return s3_fail(why, S3_MALFORMED_TRAILER,
                       "x-amz-trailer needs a body in chunks: set x-amz-content-sha256 to "
                       "STREAMING-UNSIGNED-PAYLOAD-TRAILER");
    b->sum = s3_sum_new(b->asked.value.type);
    return S3_OK;
}

enum s3_error body_new(const struct gateway_call *call, int64_t length, struct body **out,
                       struct s3_failure *why)
{
    _cleanup_(body_freep)
    struct body *b = xcalloc(1, sizeof *b);
    enum s3_error e;
    struct checksum_value md5;
    *out = NULL;
    if ((e = s3_sum_content_md5(&call->head, &md5, why)) != S3_OK ||
        (e = read_length(call, length, &b->length, why)) != S3_OK ||
        (e = begin_chunks(b, call, why)) != S3_OK || (e = begin_digest(b, call, why)) != S3_OK ||
        (e = begin_sum(b, call, why)) != S3_OK)
        return e;
    *out = steal(b);
    return S3_OK;
}

void body_free(struct body *b)
{
    if (b == NULL)
        return;
    s3_chunked_free(b->chunked);
    s3_sum_free(b->digest);
    s3_sum_free(b->sum);
    free(b);
}

enum s3_error body_check_none(struct http_request *req, const struct gateway_call *call,
                              struct s3_failure *why)
{
    _cleanup_(body_freep)
    struct body *body = NULL;
    if (http_content_length(req) != 0)
        return s3_fail(why, S3_INVALID_REQUEST, "%s has no body", call->op->name);
    enum s3_error e = body_new(call, 0, &body, why);
    return e == S3_OK ? body_end(body, why) : e;
}

uint64_t body_length(const struct body *b)
{
    return b->length;
}

bool body_sum(const struct body *b, struct s3_sum_text *out)
{
    *out = (struct s3_sum_text){.is_known = !b->asked.is_in_trailer, .value = b->asked.value};
    return b->asked.is_asked;
}

/* --- the bytes -------------------------------------------------------------------------------- */

enum s3_error body_next(struct body *b, const char **data, size_t *len, const char **out,
                        size_t *out_len, struct s3_failure *why)
{
    if (b->chunked != NULL) {
        enum s3_error e = s3_chunked_decode(b->chunked, data, len, out, out_len, why);
        if (e != S3_OK)
            return e;
    } else {
        *out = *data;
        *out_len = *len;
        *data += *len;
        *len = 0;
    }
    b->given += *out_len;
    if (b->digest != NULL)
        s3_sum_update(b->digest, *out, *out_len);
    if (b->sum != NULL)
        s3_sum_update(b->sum, *out, *out_len);
    return S3_OK;
}

/* What is decoded and was not taken is offered again, and is not decoded twice. */
enum body_outcome body_pass(struct body *b, const struct body_sink *to, const char *data,
                            size_t len, size_t *taken, struct s3_failure *why)
{
    const char *at = data, *end = data + len;
    *taken = len;
    while (at < end) {
        const char *rest = at;
        size_t left = (size_t)(end - at);
        if (b->ready == 0 && body_next(b, &rest, &left, &at, &b->ready, why) != S3_OK)
            return BODY_WRONG;
        if (b->ready == 0)
            return BODY_PASSED;
        ssize_t n = to->put(to->ctx, at, b->ready);
        if (n == BODY_SINK_FULL) {
            *taken = (size_t)(at - data);
            return BODY_PASSED;
        }
        if (n < 0)
            return BODY_UNWANTED;
        at += n;
        b->ready -= (size_t)n;
    }
    return BODY_PASSED;
}

static enum s3_error check_digest(struct body *b, struct s3_failure *why)
{
    struct s3_sum_value got;
    if (b->digest == NULL)
        return S3_OK;
    s3_sum_final(b->digest, &got);
    return s3_sum_equal(&got, &b->digest_wanted) ? S3_OK : s3_fail(why, S3_CONTENT_SHA256, NULL);
}

static enum s3_error check_sum(struct body *b, struct s3_failure *why)
{
    struct s3_sum_value *wanted = &b->asked.value, got;
    if (b->sum == NULL)
        return S3_OK;
    const char *name = s3_sum_header(wanted->type);
    const char *text = b->asked.is_in_trailer ? s3_chunked_trailer(b->chunked, name) : NULL;
    if (b->asked.is_in_trailer && (text == NULL || !s3_sum_parse(wanted->type, text, wanted)))
        return s3_fail(why, S3_MALFORMED_TRAILER, "The trailer %s is missing or no checksum", name);
    s3_sum_final(b->sum, &got);
    return s3_sum_equal(&got, wanted) ? S3_OK : s3_fail(why, S3_BAD_DIGEST, NULL);
}

enum s3_error body_end(struct body *b, struct s3_failure *why)
{
    enum s3_error e = b->chunked != NULL ? s3_chunked_end(b->chunked, why) : S3_OK;
    if (e == S3_OK && b->given != b->length)
        e = s3_fail(why, S3_INCOMPLETE_BODY, NULL);
    if (e == S3_OK)
        e = check_digest(b, why);
    return e == S3_OK ? check_sum(b, why) : e;
}
