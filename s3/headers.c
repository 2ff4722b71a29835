#include "s3/headers.h"

#include <string.h>
#include <strings.h>

static const struct row {
    const char *name, *values;
    enum s3_error error;
} rows[] = {
#define S3_HEADER(name, values, error) {name, values, S3_##error},
#include "s3/headers.def"
#undef S3_HEADER
};

static bool has_name(const struct row *row, const char *name)
{
    size_t len = strlen(row->name);
    if (row->name[len - 1] == '*')
        return strncasecmp(row->name, name, len - 1) == 0;
    return strcasecmp(row->name, name) == 0;
}

static bool has_value(const struct row *row, const char *value)
{
    size_t len = strlen(value);
    const char *at = row->values;
    while (*at != '\0') {
        size_t one = strcspn(at, "|");
        if (one == len && strncmp(at, value, len) == 0)
            return true;
        at += one + (at[one] == '|');
    }
    return false;
}

enum s3_error s3_headers_check(const struct s3_request *r, struct s3_failure *why)
{
    for (size_t i = 0; i < r->header_count; i++) {
        const struct s3_field *header = &r->headers[i];
        for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
            if (has_name(&rows[k], header->name) && !has_value(&rows[k], header->value))
                return s3_fail(why, rows[k].error, "The header %.64s: %.64s is not supported",
                               header->name, header->value);
        }
    }
    return S3_OK;
}
