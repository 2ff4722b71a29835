/* Which checksum an upload in parts has: x-amz-checksum-algorithm and x-amz-checksum-type.
 *
 *   FULL_OBJECT   of all bytes: CRC32, CRC32C, CRC64NVME
 *   COMPOSITE     of the checksums of the parts: all but CRC64NVME, and the default of these
 *
 * Pure. */
#pragma once

#include <stdbool.h>

#include "s3/sum.h"

struct s3_sum_kind {
    bool is_asked;
    enum s3_sum_type type;
    bool is_composite;
};

/* The algorithm by its name, in any case.  False: it is not known. */
bool s3_sum_type_find(const char *name, enum s3_sum_type *out);
/* S3_INVALID_REQUEST: an algorithm or a type that is not known, or a pair that is none. */
enum s3_error s3_sum_kind_read(const struct s3_request *r, struct s3_sum_kind *out,
                               struct s3_failure *why);
const char *s3_sum_kind_text(const struct s3_sum_kind *kind); /* "COMPOSITE" */

/* Both in one text, as calls between nodes have it: "CRC32C COMPOSITE". */
enum { S3_SUM_KIND_MAX = 32 }; /* bytes, with the end */
/* False: the text is not one that s3_sum_kind_print() writes, or the pair is none. */
bool s3_sum_kind_parse(const char *text, struct s3_sum_kind *out);
/* Returns out. */
const char *s3_sum_kind_print(const struct s3_sum_kind *kind, char out[static S3_SUM_KIND_MAX]);
bool s3_sum_kind_equal(const struct s3_sum_kind *a, const struct s3_sum_kind *b);
