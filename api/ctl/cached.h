/* How much of each bucket with a backend is here, for `bucket ls`.
 *
 * Into the documents of such buckets comes "cached": {"objects", "bytes"}, by the targets' indexes,
 * which they walk for that.  With `totals` it is counted by the bucket's whole list, the backend's
 * names among it, page by page, and "of_objects" and "of_bytes" say of how much; of a backend that
 * cannot be listed nobody knows.  Targets that do not answer are in "missing". */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "api/ctl/ctl.h"

/* EXIT_PARTIAL: something could not be counted, and a remark says what. */
int cached_add(struct ctl *ctl, json_t *buckets, bool totals);

enum { CACHED_TEXT_MAX = 128 };
/* "3 (1.5 KiB)", "3 of 12 (1.5 KiB of 6.0 KiB, 25%)"; NULL: nothing is known of it. */
const char *cached_text(const struct ctl *ctl, json_t *bucket, char out[static CACHED_TEXT_MAX]);
