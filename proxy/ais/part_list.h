/* The list of parts by which the SDK completes an upload, as the native call takes it.
 *
 *   [{"part-number": 2, "etag": ""}, {"part-number": 1}]  ─▶  [{"part":1},{"part":2}]
 *
 * The SDK lists parts in the order in which they were sent, and one that was sent again twice.  It
 * keeps no entity tags: a part is taken as it is stored.  Pure. */
#pragma once

#include <jansson.h>

#include "common/buf.h"
#include "common/error.h"

/* E_JSON, E_INVALID: which item is wrong. */
int part_list_translate(json_t *value, struct buf *out, struct error *err);
