#include "s3/uploads/complete_sum.h"

#include <strings.h>

#include "s3/uploads/object_sum.h"

static enum s3_error read_header(const struct s3_request *r, struct s3_complete_sum *out,
                                 struct s3_failure *why)
{
    *out = (struct s3_complete_sum){.is_given = false};
    for (enum s3_sum_type t = 0; t < S3_SUM_TYPES; t++) {
        const char *text = s3_header(r, s3_sum_header(t));
        if (text == NULL)
            continue;
        if (out->is_given)
            return s3_fail(why, S3_INVALID_REQUEST, "%s is a second checksum", s3_sum_header(t));
        if (!s3_object_sum_read(t, text, &out->sum))
            return s3_fail(why, S3_BAD_DIGEST, "%s is no checksum of an object", s3_sum_header(t));
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
    if (type != NULL && strcasecmp(type, s3_object_sum_type(&out->sum)) != 0)
        return s3_fail(why, S3_INVALID_REQUEST,
                       "x-amz-checksum-type: %s has no \"-N\" if it is FULL_OBJECT, and one if it "
                       "is COMPOSITE",
                       s3_sum_header(out->sum.value.type));
    return is_composite ? check_composite(&out->sum, list, why) : S3_OK;
}
