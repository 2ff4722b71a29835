/* Objects of a volume's bucket that no commit names: left by a mount that ended between a put and
 * its commit.
 *
 *     gc_new()     which slices may still be committed: those of living sessions, and new ones
 *     gc_object()  each object of the bucket
 *     gc_look()    names, shared slices and queue of the metadata
 *     gc_garbage() what is left
 *
 * In this order it is right while mounts write: an object that is seen has a slice of a session
 * that has ended, so all its commits were before gc_look().  One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "mount/volume/format.h"

struct gc_options {
    int64_t older_ms; /* objects that were written later stay */
};

struct gc_tally {
    uint64_t objects, bytes;
    uint64_t young;       /* not older than the grace */
    uint64_t living;      /* of slices that a session may commit yet */
    uint64_t foreign;     /* names that are no block's */
    uint64_t queued, due; /* slices that no file names, to be deleted; those whose grace is over */
    uint64_t queued_bytes;
    uint64_t garbage, garbage_bytes; /* objects */
};

struct gc;

int gc_new(struct meta *m, const struct volume_format *format, const struct gc_options *options,
           struct gc **out, struct error *err);
void gc_free(struct gc *gc); /* NULL is fine */
DEFINE_CLEANUP(struct gc, gc_free);
void gc_object(struct gc *gc, const char *key, uint64_t bytes, int64_t modified_ms);
int gc_look(struct gc *gc, struct error *err);
/* The index-th; malloc'ed; NULL behind the last one. */
char *gc_garbage(const struct gc *gc, size_t index);
const struct gc_tally *gc_tally(const struct gc *gc);
