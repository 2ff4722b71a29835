/* The list of a bucket's open uploads. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cluster/placement/upload_id.h"
#include "common/error.h"
#include "s3/uploads/sum_kind.h"

struct mountpath_set;

struct upload_row {
    char id[UPLOAD_ID_CHARS + 1];
    char *object;
    uint64_t time_ms;
    struct s3_sum_kind sums;
};

struct upload_rows {
    struct upload_row *rows; /* by object, then by time, then by id */
    size_t count, room;
};

/* Those on the mountpaths of `set` with names that begin with `prefix`, behind the upload
 * `after_id` of the object `after`, or with "" for the id behind all of that object.  Waits for the
 * disk. */
int upload_rows_read(const struct mountpath_set *set, uint64_t bucket_id, const char *prefix,
                     const char *after, const char *after_id, struct upload_rows *out,
                     struct error *err);
void upload_rows_clear(struct upload_rows *rows);
