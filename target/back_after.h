/* What a deletion has to wait for: a rename in a bucket that is written back leaves a tombstone
 * under the old name whose metadata names the new one.  The backend loses the old name when it has
 * the new one, not before (back_upload.c); so it has the object under one of them, or under both,
 * whatever ends in between.
 *
 * The name is in base64: metadata goes in headers where a tombstone moves to another target.
 *
 * Pure. */
#pragma once

#include <stdbool.h>

#include "common/buf.h"
#include "target/attr.h"

#define BACK_AFTER "backend-after"

/* The pair, into metadata. */
void back_after_put(struct buf *meta, const char *new_name);
/* False: it waits for nothing. */
bool back_after_get(const struct attr *tombstone, char new_name[static ATTR_NAME_MAX + 1]);
