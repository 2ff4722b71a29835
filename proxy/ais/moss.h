/* The document of AIStore's Get-Batch as that of a native batch (target/archive/batch_spec.h).
 *
 *   {"in": [{"objname": "o", "bucket": "b", "archpath": "m", "start": 5, "length": -1}, …],
 *    "mime": ".tar", "coer": true, "onob": false, "strm": true}
 *
 *   coer    what is missing is an empty file, in place of an error
 *   onob    names without the bucket
 *   strm    the archive alone; else a report comes before it
 *   coloc   a hint, which changes nothing here
 *
 * Pure. */
#pragma once

#include <stddef.h>

#include "common/buf.h"
#include "common/error.h"

/* `bucket`: of the entries that name none; or NULL.  E_JSON, E_INVALID, E_UNSUPPORTED: which entry
 * is wrong, and why. */
int moss_translate(const char *data, size_t len, const char *bucket, struct buf *out,
                   struct error *err);
