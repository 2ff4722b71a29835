#include "mount/bucket/errors.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "common/error.h"
#include "common/log.h"

static const struct {
    int code;
    int errnum;
} codes[] = {
    {E_BUCKET_NOT_FOUND, ESTALE}, /* the whole mount is of something that has gone */
    {E_NO_SPACE, ENOSPC},         {E_QUOTA_EXCEEDED, EDQUOT},
    {E_WRITE_ONCE, EPERM}, /* as of a file that is immutable */
    {E_IS_RING, EPERM},           {E_TOO_LARGE, EFBIG},
};

static const struct {
    int result;
    int errnum;
} rows[] = {
    {DFC_NOT_FOUND, ENOENT},    {DFC_INVALID, ENOENT},  {DFC_DENIED, EACCES},
    {DFC_PRECONDITION, ESTALE}, {DFC_CANCELLED, EINTR}, {DFC_TIMED_OUT, ETIMEDOUT},
};

int errors_of(const struct dfc_error *err)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (strcmp(err->code, error_name(codes[i].code)) == 0)
            return -codes[i].errnum;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].result == err->result)
            return -rows[i].errnum;
    }
    return -EIO;
}

int errors_told(const char *where, const struct dfc_error *err)
{
    int rc = errors_of(err);
    if (rc != -ENOENT && rc != -EINTR)
        log_warn("call failed", lstr("of", where), lstr("code", err->code),
                 lstr("error", err->message), lstr("node", err->node),
                 lstr("call", err->request_id));
    return rc;
}
