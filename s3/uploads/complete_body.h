/* <CompleteMultipartUpload>: which parts become the object.  Pure; fuzzed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/arena.h"
#include "s3/sum.h"

enum { S3_PARTS_MAX = 10000 };

struct s3_part {
    unsigned number; /* 1 to S3_PARTS_MAX */
    const char *etag;
    bool has_sum;
    struct s3_sum_value sum;
};

struct s3_complete {
    const struct s3_part *parts; /* by ascending numbers */
    size_t count;
};

/* Texts are the arena's.  S3_MALFORMED_XML: also no part, or one without number or entity tag.
 * S3_INVALID_PART: a number out of bounds.  S3_INVALID_PART_ORDER.  S3_INVALID_REQUEST: a checksum
 * that is none. */
enum s3_error s3_complete_parse(const char *body, size_t len, struct arena *arena,
                                struct s3_complete *out, struct s3_failure *why);
