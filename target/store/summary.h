/* What a target has of each bucket, by its indexes: objects (no tombstones; those whose bytes are
 * in slices, too), slices of objects, and the bytes that it has of all these.  While objects are
 * moved between mountpaths one may be counted twice. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "target/disk/mountpaths.h"

struct summary_row {
    uint64_t bucket_id, objects, bytes;
    uint64_t internal, internal_bytes; /* of these, with an internal name; their slices excepted */
    uint64_t slices;                   /* here */
    uint64_t
        sliced; /* objects in slices for which this target acts: all targets' are all there are */
    uint64_t
        pending; /* writes and deletions that the bucket's backend does not have yet (back.h) */
};

struct summary {
    uint64_t pending_mark; /* of all indexes together (index.h), from before they were looked at */
    size_t count;
    struct summary_row *rows; /* in the order of ids */
};

struct summary_env {
    void *ctx;
    bool (*acts)(void *ctx, uint64_t bucket_id, const char *name); /* this target, for this name */
    bool (*counts)(void *ctx, uint64_t bucket_id);                 /* NULL: every bucket does */
};

/* Walks the indexes (env may be NULL: `sliced` is 0): a second for some millions of names.
 * E_MOUNTPATH_DISABLED, E_NOT_READY, E_IO where one cannot be relied on: never short. */
int summary_make(struct mountpaths *m, const struct summary_env *env, struct summary *out,
                 struct error *err);
void summary_done(struct summary *s);
