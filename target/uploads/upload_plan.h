/* What the completion of an upload needs: the list of a client, compared with the parts that are
 * stored.  Pure. */
#pragma once

#include <stdbool.h>

#include "s3/uploads/object_sum.h"
#include "s3/uploads/part_sizes.h"
#include "s3/uploads/part_sums.h"
#include "s3/uploads/sum_kind.h"
#include "target/uploads/part_log.h"

enum upload_verdict {
    UPLOAD_COMPLETE,
    UPLOAD_EMPTY,       /* the list has no part */
    UPLOAD_ORDER,       /* numbers do not ascend */
    UPLOAD_MISSING,     /* a part is not stored */
    UPLOAD_OTHER_BYTES, /* a part is stored with another MD5 */
    UPLOAD_OTHER_SUM,   /* a part is stored with another checksum */
    UPLOAD_SMALL,       /* a part but the last is below PART_SIZE_MIN, and not taken as_stored */
};

struct listed_part {
    unsigned number;
    bool as_stored; /* whatever bytes it has, and however few; `md5` does not count */
    unsigned char md5[PART_MD5];
    bool has_sum; /* to compare, where the upload has checksums */
    struct s3_sum_value sum;
};

enum { UPLOAD_TAG_MAX = 2 * PART_MD5 + 12 }; /* the MD5, "-", a number and the NUL */

struct upload_plan {
    enum upload_verdict verdict;
    size_t at;     /* the row of the list that is refused; 0 without a refusal */
    uint64_t size; /* of the object, in bytes */
    bool in_place; /* the first `size` bytes of the body are the object's; else copy the parts */
    char tag[UPLOAD_TAG_MAX];      /* of the object: the MD5 of the MD5s, "-", how many parts */
    char parts[PART_SIZES_MAX];    /* their sizes; "": they have no room */
    char sum[S3_OBJECT_SUM_MAX];   /* of the object; "": the upload has no checksums */
    char part_sums[PART_SUMS_MAX]; /* of the parts; "": none, or they have no room */
};

/* Of a refusal only the verdict and the row count. */
struct upload_plan upload_plan_make(const struct part_table *table, const struct s3_sum_kind *sums,
                                    const struct listed_part *list, size_t count);
