#include "s3/sum_text.h"

#include <stdio.h>
#include <string.h>

/* The length of the algorithm's name; 0: none begins so. */
static size_t find_type(const char *text, enum s3_sum_type *out)
{
    size_t len = strcspn(text, ":");
    for (enum s3_sum_type type = 0; type < S3_SUM_TYPES; type++) {
        const char *name = s3_sum_algorithm(type);
        if (strlen(name) == len && memcmp(name, text, len) == 0) {
            *out = type;
            return len;
        }
    }
    return 0;
}

bool s3_sum_text_parse(const char *text, struct s3_sum_text *out)
{
    enum s3_sum_type type;
    size_t len = find_type(text, &type);
    *out = (struct s3_sum_text){.is_known = false};
    if (len == 0)
        return false;
    out->value.type = type;
    out->is_known = text[len] == ':';
    return !out->is_known || s3_sum_parse(type, text + len + 1, &out->value);
}

const char *s3_sum_text_print(const struct s3_sum_text *t, char out[static S3_SUM_TEXT_MAX])
{
    char value[S3_SUM_BASE64_MAX] = "";
    if (t->is_known)
        s3_sum_print(&t->value, value);
    snprintf(out, S3_SUM_TEXT_MAX, "%s%s%s", s3_sum_algorithm(t->value.type),
             t->is_known ? ":" : "", value);
    return out;
}
