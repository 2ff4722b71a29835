/* Replies of CopyObject and UploadPartCopy.  Pure. */
#pragma once

#include <stdint.h>

#include "common/buf.h"
#include "s3/element.h"

struct s3_copied {
    int64_t modified_ms;
    const char *etag;                /* without quotes */
    const struct s3_object_sum *sum; /* NULL: none */
};

/* <CopyObjectResult> */
void s3_copied_document(const struct s3_copied *copied, struct buf *out);
/* <CopyPartResult>, which has no type of a checksum. */
void s3_copied_part_document(const struct s3_copied *copied, struct buf *out);
