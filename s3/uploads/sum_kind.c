#include "s3/uploads/sum_kind.h"

#include <strings.h>

bool s3_sum_type_find(const char *name, enum s3_sum_type *out)
{
    for (enum s3_sum_type t = 0; t < S3_SUM_TYPES; t++) {
        if (strcasecmp(name, s3_sum_algorithm(t)) == 0) {
            *out = t;
            return true;
        }
    }
    return false;
}

static bool is_sha(enum s3_sum_type type)
{
    return type == S3_SUM_SHA1 || type == S3_SUM_SHA256;
}

const char *s3_sum_kind_text(const struct s3_sum_kind *kind)
{
    return kind->is_composite ? "COMPOSITE" : "FULL_OBJECT";
}

enum s3_error s3_sum_kind_read(const struct s3_request *r, struct s3_sum_kind *out,
                               struct s3_failure *why)
{
    const char *algorithm = s3_header(r, "x-amz-checksum-algorithm");
    const char *type = s3_header(r, "x-amz-checksum-type");
    *out = (struct s3_sum_kind){.is_asked = algorithm != NULL};
    if (algorithm == NULL && type != NULL)
        return s3_fail(why, S3_INVALID_REQUEST,
                       "x-amz-checksum-type needs x-amz-checksum-algorithm");
    if (algorithm == NULL)
        return S3_OK;
    if (!s3_sum_type_find(algorithm, &out->type))
        return s3_fail(why, S3_INVALID_REQUEST,
                       "The algorithm %.64s in x-amz-checksum-algorithm is not known", algorithm);
    out->is_composite = out->type != S3_SUM_CRC64NVME;
    if (type != NULL)
        out->is_composite = strcasecmp(type, "COMPOSITE") == 0;
    bool is_pair = out->is_composite ? out->type != S3_SUM_CRC64NVME : !is_sha(out->type);
    if (type != NULL && (!is_pair || strcasecmp(type, s3_sum_kind_text(out)) != 0))
        return s3_fail(
            why, S3_INVALID_REQUEST,
            "x-amz-checksum-type: %s cannot be %.64s (FULL_OBJECT is of a CRC, COMPOSITE "
            "of all but CRC64NVME)",
            s3_sum_algorithm(out->type), type);
    return S3_OK;
}
