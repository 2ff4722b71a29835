/* The bytes of a file of this target, to slices: for what is whole here before it is an object, as
 * the outputs of a job are (sort/slices.h).  What comes from a client is cut as it comes
 * (slices/write.c).
 *
 *     file ─ encoder ─ pipe ─▶ PUT slice 0 ─▶ a target
 *                    └ pipe ─▶ PUT slice 1 ─▶ another, …
 *
 * All slices are on the disks of their targets when it returns; nobody knows them until somebody
 * writes the manifest. Memory: two stripes, and a pipe for each slice.  Waits: for threads that
 * may. */
#pragma once

#include <stdatomic.h>

#include "cluster/documents/state.h"
#include "target/format/ec_manifest.h"

struct target;

struct ec_storing {
    struct target *target;
    uint64_t bucket_id;
    const char *name;
    int fd;
    /* Those that may take one, by rank; to all k + m, or to at least k + 1 of them. */
    const struct node *const *ranked;
    size_t count;
    bool all;
    const atomic_bool *stopped; /* ends it with E_ABORTED */
};

/* Of *m layout and checksum are given (none: not compared); the tag is a new one, also after a
 * failure. *since_ms: of clock_ms(), no slice is older (slices/sweep.h).  E_NO_TARGETS: too few are
 * left; E_CORRUPT where the file has not its checksum; what a target has said that could not take
 * its slice. */
int ec_store(const struct ec_storing *s, struct ec_manifest *m, uint64_t *since_ms,
             struct error *err);
