/* Where a copy comes from: the headers x-amz-copy-source and x-amz-copy-source-range.  Pure;
 * fuzzed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "s3/request.h"

struct s3_copy_source {
    const char *bucket, *key; /* the arena's */
    bool has_range;           /* first and last byte, both included */
    uint64_t first, last;
};

/* "BUCKET/KEY", with or without a slash before it, escaped once; "?versionId=null" may follow.
 * S3_INVALID_ARGUMENT: it is missing or malformed, names another version, or the range is not
 * "bytes=FIRST-LAST".  S3_KEY_TOO_LONG. */
enum s3_error s3_copy_source_read(const struct s3_request *r, struct arena *arena,
                                  struct s3_copy_source *out, struct s3_failure *why);
