/* A target's mountpaths, opened together, and the choice of one for an object.
 *
 * The choice is HRW of (bucket id, name) over the mountpaths' ids, so that the loss of a disk
 * moves nothing between the others.  After a mountpath was added the set is not settled
 * (format.h): then an object may lie on any of them, and where several copies are, the greatest
 * version counts.
 *
 * Opening checks that they belong together, opens each one's index, fills anew what was not
 * closed in order (reindex.h; the mountpaths side by side), and starts each one's disk thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "target/mountpath.h"

enum { MOUNTPATHS_MAX = 256 };

struct mountpaths;

struct mountpaths_config {
    const char *target_id;
    const char *list; /* "/d1,/d2": directories, made where they are missing */
    uint64_t index_map_size;
    unsigned disk_depth; /* operations outstanding at one disk */
    bool plain_io;       /* no io_uring */
    bool reindex;        /* fill all indexes anew */
    bool moved_ok;
    bool lost_ok;
};

int mountpaths_open(const struct mountpaths_config *config, struct mountpaths **out,
                    struct error *err);
void mountpaths_close(struct mountpaths *m);
DEFINE_CLEANUP(struct mountpaths, mountpaths_close);

size_t mountpaths_count(const struct mountpaths *m);
struct mountpath *mountpaths_at(const struct mountpaths *m, size_t i);
/* Where HRW puts the object. */
struct mountpath *mountpaths_pick(const struct mountpaths *m, uint64_t bucket_id,
                                  const char *name);
bool mountpaths_settled(const struct mountpaths *m);

/* The cluster that the mountpaths belong to; "" until the target has joined one. */
const char *mountpaths_cluster(const struct mountpaths *m);
/* Writes it down, durably, on all of them. */
int mountpaths_set_cluster(struct mountpaths *m, const char *cluster_id, struct error *err);
/* Sums over the file systems, each counted once. */
int mountpaths_capacity(const struct mountpaths *m, uint64_t *total_bytes,
                        uint64_t *available_bytes, struct error *err);
