/* Where buckets are: <CreateBucketConfiguration>, and what GetBucketLocation says.  Pure. */
#pragma once

#include <stddef.h>

#include "common/buf.h"
#include "s3/error.h"

#define S3_DEFAULT_REGION "us-east-1"

/* The body of CreateBucket, which may be empty.  S3_INVALID_LOCATION: it names a region other than
 * `region`.  S3_NOT_IMPLEMENTED: it asks for a directory bucket or for tags. */
enum s3_error s3_location_check(const char *body, size_t len, const char *region,
                                struct s3_failure *why);
/* <LocationConstraint>; empty for S3_DEFAULT_REGION, as AWS has it. */
void s3_location_document(const char *region, struct buf *out);
