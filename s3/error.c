#include "s3/error.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/error.h"
#include "s3/xml_write.h"

static const struct row {
    const char *code;
    int status;
    const char *message;
} rows[S3_ERRORS] = {
    [S3_OK] = {"", 200, ""},
#define S3_ERROR(name, code, http, message) [S3_##name] = {code, http, message},
#include "s3/error.def"
#undef S3_ERROR
};

/* Codes whose meaning S3 has a name for. */
static const struct pair {
    int code;
    enum s3_error error;
} pairs[] = {
    {E_INVALID, S3_INVALID_ARGUMENT},
    {E_NAME, S3_INVALID_ARGUMENT},
    {E_RANGE, S3_INVALID_RANGE},
    {E_METHOD, S3_METHOD_NOT_ALLOWED},
    {E_TOO_LARGE, S3_ENTITY_TOO_LARGE},
    {E_LENGTH, S3_INCOMPLETE_BODY},
    {E_BUCKET_NOT_FOUND, S3_NO_BUCKET},
    {E_BUCKET_EXISTS, S3_BUCKET_EXISTS},
    {E_BUCKET_NOT_EMPTY, S3_BUCKET_NOT_EMPTY},
    {E_OBJECT_NOT_FOUND, S3_NO_KEY},
    {E_CHECKSUM, S3_BAD_DIGEST},
    {E_PRECONDITION, S3_PRECONDITION_FAILED},
    {E_PART, S3_INVALID_PART},
    {E_PART_ORDER, S3_INVALID_PART_ORDER},
    {E_PART_SMALL, S3_ENTITY_TOO_SMALL},
    {E_NO_SPACE, S3_INSUFFICIENT_CAPACITY},
    {E_UNAUTHORIZED, S3_ACCESS_DENIED},
    {E_ACCESS_DENIED, S3_ACCESS_DENIED},
    {E_RATE_LIMITED, S3_SLOW_DOWN},
    {E_QUOTA_EXCEEDED, S3_QUOTA_EXCEEDED},
    {E_WRITE_ONCE, S3_ACCESS_DENIED},
    {E_IS_RING, S3_ACCESS_DENIED},
    {E_UNSUPPORTED, S3_NOT_IMPLEMENTED},
    {E_REQUEST_TIMEOUT, S3_TIMEOUT},
    {E_STALE_MAP, S3_SLOW_DOWN},
    {E_WRONG_OWNER, S3_SLOW_DOWN},
    {E_NET, S3_SLOW_DOWN},
    {E_TIMEOUT, S3_SLOW_DOWN},
};

enum s3_error s3_fail(struct s3_failure *why, enum s3_error error, const char *fmt, ...)
{
    if (why == NULL)
        return error;
    why->error = error;
    if (fmt == NULL) {
        snprintf(why->message, sizeof why->message, "%s", rows[error].message);
        return error;
    }
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why->message, sizeof why->message, fmt, ap);
    va_end(ap);
    return error;
}

const char *s3_error_code(enum s3_error error)
{
    return rows[error].code;
}

const char *s3_error_message(enum s3_error error)
{
    return rows[error].message;
}

int s3_error_status(enum s3_error error)
{
    return rows[error].status;
}

enum s3_error s3_error_of(int code)
{
    if (code == 0)
        return S3_OK;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (pairs[i].code == code)
            return pairs[i].error;
    }
    int status = error_status(code);
    if (status < 500)
        return S3_INVALID_REQUEST;
    return status == 503 ? S3_SLOW_DOWN : S3_INTERNAL;
}

void s3_error_document(const struct s3_failure *why, const char *resource, const char *request_id,
                       struct buf *out)
{
    xml_put_root(out, "Error", "");
    xml_put_element(out, "Code", s3_error_code(why->error));
    xml_put_element(out, "Message", why->message);
    xml_put_element(out, "Resource", resource);
    xml_put_element(out, "RequestId", request_id);
    xml_put_close(out, "Error");
}
