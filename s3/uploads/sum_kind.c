#include "s3/uploads/sum_kind.h"

#include <stdio.h>
#include <string.h>
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

static bool is_pair(const struct s3_sum_kind *kind)
{
    return kind->is_composite ? kind->type != S3_SUM_CRC64NVME : !is_sha(kind->type);
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
    if (type != NULL && (!is_pair(out) || strcasecmp(type, s3_sum_kind_text(out)) != 0))
        return s3_fail(
            why, S3_INVALID_REQUEST,
            "x-amz-checksum-type: %s cannot be %.64s (FULL_OBJECT is of a CRC, COMPOSITE "
            "of all but CRC64NVME)",
            s3_sum_algorithm(out->type), type);
    return S3_OK;
}

bool s3_sum_kind_parse(const char *text, struct s3_sum_kind *out)
{
    char again[S3_SUM_KIND_MAX];
    *out = (struct s3_sum_kind){.is_asked = true};
    for (enum s3_sum_type t = 0; t < S3_SUM_TYPES; t++) {
        for (int composite = 0; composite <= 1; composite++) {
            out->type = t;
            out->is_composite = composite != 0;
            if (is_pair(out) && strcmp(s3_sum_kind_print(out, again), text) == 0)
                return true;
        }
    }
    return false;
}

const char *s3_sum_kind_print(const struct s3_sum_kind *kind, char out[static S3_SUM_KIND_MAX])
{
    snprintf(out, S3_SUM_KIND_MAX, "%s %s", s3_sum_algorithm(kind->type), s3_sum_kind_text(kind));
    return out;
}

bool s3_sum_kind_equal(const struct s3_sum_kind *a, const struct s3_sum_kind *b)
{
    return a->is_asked == b->is_asked && a->type == b->type && a->is_composite == b->is_composite;
}
