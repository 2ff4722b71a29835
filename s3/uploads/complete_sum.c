#include "s3/uploads/complete_sum.h"

#include <string.h>
#include <strings.h>

#include "common/parse.h"

/* "yZRlqg==-3": base64 has no '-'. */
static bool read_value(enum s3_sum_type type, const char *text, struct s3_object_sum *out)
{
    char value[S3_SUM_BASE64_MAX];
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
    return s3_sum_parse(type, value, &out->value);
}

static enum s3_error read_header(const struct s3_request *r, struct s3_complete_sum *out,
                                 struct s3_failure *why)
{
    *out = (struct s3_complete_sum){.is_given = false};
    for (enum s3_sum_type t = 0; t < S3_SUM_TYPES; t++) {
        const char *text = s3_header(r, s3_sum_header(t));
        if (text == NULL)
            continue;
        if (out->is_given || !read_value(t, text, &out->sum))
            return s3_fail(why, S3_INVALID_REQUEST,
                           "%s is no checksum of an object, or a second one", s3_sum_header(t));
        out->is_given = true;
    }
    return S3_OK;
}

static enum s3_error check_composite(const struct s3_object_sum *wanted,
                                     const struct s3_complete *list, struct s3_failure *why)
{
    struct s3_sum_value got;
    enum s3_sum_type type = wanted->value.type;
    _cleanup_(s3_sum_freep)
    struct s3_sum *sum = s3_sum_new(type);
    for (size_t i = 0; i < list->count; i++) {
        const struct s3_part *part = &list->parts[i];
        if (!part->has_sum || part->sum.type != type)
            return s3_fail(why, S3_INVALID_REQUEST, "Part %u has no checksum %s", part->number,
                           s3_sum_algorithm(type));
        s3_sum_update(sum, part->sum.bytes, s3_sum_size(type));
    }
    s3_sum_final(sum, &got);
    bool is_same = list->count == wanted->parts && s3_sum_equal(&got, &wanted->value);
    return is_same ? S3_OK
                   : s3_fail(why, S3_BAD_DIGEST, "%s is not the checksum of the listed parts",
                             s3_sum_header(type));
}

enum s3_error s3_complete_sum_read(const struct s3_request *r, const struct s3_complete *list,
                                   struct s3_complete_sum *out, struct s3_failure *why)
{
    const char *type = s3_header(r, "x-amz-checksum-type");
    enum s3_error e = read_header(r, out, why);
    if (e != S3_OK || !out->is_given)
        return e;
    bool is_composite = out->sum.parts > 0;
    if (type != NULL && strcasecmp(type, is_composite ? "COMPOSITE" : "FULL_OBJECT") != 0)
        return s3_fail(why, S3_INVALID_REQUEST,
                       "x-amz-checksum-type: %s has no \"-N\" if it is FULL_OBJECT, and one if it "
                       "is COMPOSITE",
                       s3_sum_header(out->sum.value.type));
    return is_composite ? check_composite(&out->sum, list, why) : S3_OK;
}
