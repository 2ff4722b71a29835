#include "mount/bucket/errors.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "common/log.h"

static const struct {
    int result;
    int errnum;
} rows[] = {
    {DFC_NOT_FOUND, ENOENT},    {DFC_INVALID, ENOENT},  {DFC_DENIED, EACCES},
    {DFC_PRECONDITION, ESTALE}, {DFC_CANCELLED, EINTR}, {DFC_TIMED_OUT, ETIMEDOUT},
};

int errors_of(const struct dfc_error *err)
{
    /* The whole mount is of something that has gone. */
    if (strcmp(err->code, "bucket_not_found") == 0)
        return -ESTALE;
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
