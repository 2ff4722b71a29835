#include "s3/uploads/object_sum.h"

#include <stdio.h>
#include <string.h>

#include "common/parse.h"
#include "s3/uploads/complete_body.h"
#include "s3/uploads/sum_kind.h"

/* base64 has no '-'. */
bool s3_object_sum_read(enum s3_sum_type type, const char *text, struct s3_object_sum *out)
{
    char value[S3_SUM_BASE64_MAX], again[S3_OBJECT_SUM_VALUE_MAX];
    size_t len = strcspn(text, "-");
    uint64_t parts = 0;
    if (len >= sizeof value)
        return false;
    memcpy(value, text, len);
    value[len] = '\0';
    if (text[len] == '-' &&
        (parse_u64(text + len + 1, &parts, NULL) != 0 || parts == 0 || parts > S3_PARTS_MAX))
        return false;
    out->parts = (unsigned)parts;
    return s3_sum_parse(type, value, &out->value) &&
           strcmp(s3_object_sum_value(out, again), text) == 0;
}

const char *s3_object_sum_value(const struct s3_object_sum *sum,
                                char out[static S3_OBJECT_SUM_VALUE_MAX])
{
    s3_sum_print(&sum->value, out);
    size_t len = strlen(out);
    if (sum->parts > 0)
        snprintf(out + len, S3_OBJECT_SUM_VALUE_MAX - len, "-%u", sum->parts);
    return out;
}

bool s3_object_sum_parse(const char *text, struct s3_object_sum *out)
{
    char name[16];
    enum s3_sum_type type;
    size_t len = strcspn(text, ":");
    if (text[len] != ':' || len >= sizeof name)
        return false;
    memcpy(name, text, len);
    name[len] = '\0';
    return s3_sum_type_find(name, &type) && strcmp(name, s3_sum_algorithm(type)) == 0 &&
           s3_object_sum_read(type, text + len + 1, out);
}

const char *s3_object_sum_print(const struct s3_object_sum *sum, char out[static S3_OBJECT_SUM_MAX])
{
    char value[S3_OBJECT_SUM_VALUE_MAX];
    snprintf(out, S3_OBJECT_SUM_MAX, "%s:%s", s3_sum_algorithm(sum->value.type),
             s3_object_sum_value(sum, value));
    return out;
}

bool s3_object_sum_equal(const struct s3_object_sum *a, const struct s3_object_sum *b)
{
    return a->parts == b->parts && s3_sum_equal(&a->value, &b->value);
}

const char *s3_object_sum_type(const struct s3_object_sum *sum)
{
    return sum->parts > 0 ? "COMPOSITE" : "FULL_OBJECT";
}
