/* The index of a whole output that the package `wids` of WebDataset reads (wids.ShardListDataset):
 *
 *     {"__kind__": "wids-shard-index-v1", "wids_version": 1, "shardlist": [
 *     {"url": "out-000000.tar", "nsamples": 1203, "filesize": 104867840},
 *     …
 *     ]}
 *
 * A URL is the shard's name as seen from the index's own directory.  A sample is what wids takes
 * for one: neighbours in a shard whose names are the same up to the first dot.  It reads plain
 * tars; of other shards the file's size is left out.  So is `md5sum`, which it does not compare. */
#pragma once

#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "sort/base/blob.h"

/* Into an empty blob. */
int wids_begin(struct blob *text, struct error *err);
struct wids_shard {
    const char *name;
    uint64_t samples;
    uint64_t bytes; /* of the file; SORT_SIZE_UNKNOWN */
};
int wids_add(struct blob *text, const char *index, const struct wids_shard *s, bool first,
             struct error *err);
int wids_end(struct blob *text, struct error *err);
