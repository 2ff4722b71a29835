/* The primary's part of the job `validate`.  Its value is {"checksums": bool, "rate": bytes a
 * second at each mountpath, 0: no limit}. */
#include "common/jsonx.h"
#include "proxy/jobs/job_kind.h"
#include "proxy/jobs/job_make.h"

#define RATE_DEFAULT (64u << 20)

static int spec(json_t *value, json_t **out, struct error *err)
{
    static const char *const fields[] = {"checksums", "rate", NULL};
    bool checksums = false;
    uint64_t rate = RATE_DEFAULT;
    int code = json_only_fields(value, "value", fields, err);
    if (code == 0)
        code = json_get_bool(value, "value", "checksums", &checksums, err);
    if (code == 0)
        code = job_make_rate(value, &rate, err);
    if (code == 0)
        *out =
            json_pack("{s:b, s:I}", "checksums", (int)checksums, "rate_bytes_s", (json_int_t)rate);
    return code;
}

const struct job_kind validate_kind = {.name = "validate", .spec = spec};
