/* What a deletion has to wait for: a rename in a bucket that is written back leaves a tombstone
 * under the old name whose metadata says what the new one has got.  The backend loses the old name
 * when it has that, not before (back_upload.c); so it has the object under one of them, or under
 * both, whatever ends in between.
 *
 * That the backend has something under the new name says nothing: it may be what was there before,
 * while the renamed object went with its disk.  What counts is
 *
 *   the new name's owner has      the old name
 *   what waits, or is on its way  waits
 *   a deletion, as new            goes: somebody wanted the new name to be gone, or another object
 *   an object, as new, that went
 *     from here to the backend    goes: the renamed one, or what took its place
 *   anything else                 waits while objects move; then goes if the backend's bytes are
 *                                 those that were renamed (back_compare.h)
 *
 * "As new" is by the version that the new name had when the rename had made it.
 *
 * The name is in base64: metadata goes in headers where a tombstone moves to another target.  What
 * a record does not say is 0, and CHECKSUM_NONE.
 *
 * Pure. */
#pragma once

#include <stdbool.h>

#include "common/buf.h"
#include "target/format/attr.h"
#include "target/store/object.h"

#define BACK_AFTER "backend-after"
#define BACK_AFTER_IS "backend-after-is"

struct back_after {
    char name[ATTR_NAME_MAX + 1]; /* the new one */
    struct version version;       /* that it got */
    uint64_t size;                /* of what was renamed … */
    struct checksum_value sum;    /* … and its checksum */
};

/* The pairs, into metadata. */
void back_after_put(struct buf *meta, const struct back_after *a);
/* False: it waits for nothing. */
bool back_after_get(const struct attr *tombstone, struct back_after *out);

enum back_after_step { BACK_AFTER_WAIT, BACK_AFTER_GO, BACK_AFTER_COMPARE };

/* held: what the new name's owner has of it.  settled: no objects move to other targets. */
enum back_after_step back_after_step(const struct back_after *a, const struct object_held *held,
                                     bool settled);
