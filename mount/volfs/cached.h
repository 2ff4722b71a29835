/* The caches of a volume: its blocks, by name and sums, on this machine's disk and in a group.
 *
 *     buffer -> sums -> tiers -> cache, or group, or the bucket      reads: all is compared
 *     put    -> the bucket, then the cache                   a block that was written may stay
 *     warm   -> the group, or the bucket -> sums -> cache    only what was compared is kept
 *
 * What the cache or the group gives is compared with the sums that the metadata have.  A piece that
 * differs is removed from the cache, and its bytes come from the bucket. */
#pragma once

#include "mount/data/sums.h"
#include "mount/data/tiers.h"
#include "mount/volfs/store.h"

struct cached {
    struct tiers tiers;     /* of reads */
    struct tiers warming;   /* the same cache, over what was compared */
    struct sums compared;   /* the tiers' bytes */
    struct sums from_below; /* those of the group, or of the bucket */
    struct volfs_store store;
};

/* Without options->directories there is no cache, and blocks are compared only. */
int cached_open(struct cached *c, const struct cache_options *options, const char *volume,
                const struct volfs_store *store, struct error *err);
void cached_close(struct cached *c);
struct data_store cached_reads(struct cached *c);
struct volfs_store cached_store(struct cached *c);
