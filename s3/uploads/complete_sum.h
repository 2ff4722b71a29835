/* The checksum of a whole object in a CompleteMultipartUpload: x-amz-checksum-…, either of all
 * bytes (FULL_OBJECT), or with "-N" behind it of the checksums of N parts (COMPOSITE).  Pure. */
#pragma once

#include <stdbool.h>

#include "s3/uploads/complete_body.h"
#include "s3/element.h"

struct s3_complete_sum {
    bool is_given;
    struct s3_object_sum sum;
};

/* S3_INVALID_REQUEST: two checksums, a composite one where not every part of the list has a
 * checksum of the same type, or x-amz-checksum-type is another one.  S3_BAD_DIGEST: it is no value
 * of its type, or a composite one is not that of the list. */
enum s3_error s3_complete_sum_read(const struct s3_request *r, const struct s3_complete *list,
                                   struct s3_complete_sum *out, struct s3_failure *why);
