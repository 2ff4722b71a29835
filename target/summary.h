/* What a target has of each bucket, by its indexes: objects (no tombstones) and their bytes.  While
 * objects are moved between mountpaths one may be counted twice. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "target/mountpaths.h"

struct summary_row {
    uint64_t bucket_id, objects, bytes;
};

struct summary {
    size_t count;
    struct summary_row *rows; /* in the order of ids */
};

/* Walks the indexes: a second for some millions of names.  E_MOUNTPATH_DISABLED, E_NOT_READY, E_IO
 * where one cannot be relied on: never short. */
int summary_make(struct mountpaths *m, struct summary *out, struct error *err);
void summary_done(struct summary *s);
