/* The sums of a bucket's objects, page by page of its list.  Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

struct bucket_sums {
    uint64_t present, present_bytes; /* objects that are stored here */
    uint64_t all, all_bytes;         /* and those that only the backend has */
    uint64_t min, max;               /* bytes of the smallest and of the largest object */
};

/* Adds a native page of a list.  *next: the token of the page behind it, malloc'ed; NULL: it was
 * the last one.  E_CORRUPT: it is no page. */
int bucket_sums_add(struct bucket_sums *s, const struct buf *page, char **next, struct error *err);
/* The summary as AIStore has it, counts as texts:
 *
 *   {"name", "provider", "ObjCount": {"obj_count_present", "obj_count_remote"},
 *    "ObjSize": {"obj_min_size", "obj_avg_size", "obj_max_size"},
 *    "TotalSize": {"size_on_disk", "size_all_present_objs", "size_all_remote_objs",
 *                  "total_disks_size"},
 *    "used_pct", "is_present"}
 *
 * `remote`: the bucket has a backend, whose names are in the sums.  The size on disk is that of the
 * objects, without replicas and slices; what the disks have is not known: 0. */
json_t *bucket_sums_json(const struct bucket_sums *s, const char *bucket, bool remote);
