/* The input of a sort on one target: objects of the input bucket whose first owner it is, of those
 * that the job has not gone on without, pinned by hard links under the job's directory, where they
 * stay what they were whatever becomes of the objects.  Those in slices are brought there.
 *
 *     in-<series>-<32 hex digits>   a pin: the hash that the store names the object's file by
 *     pinned                        written when all are there: their series, and what they are,
 *                                   each with the stamp of its name and version
 *
 * Objects of a job `archive`, which are many and small, get a link only when they are about to
 * change: until then a set in memory has their versions (disk/pin_set.h).
 *
 * With that list a target that has restarted finds the same input again.  Without it, or where one
 * of its pins is gone, everything is pinned anew, in another series: no pin of an earlier one (its
 * disk may come back) is taken for a newer one.  What comes besides when the job goes on without
 * another target is pinned then, and added to the list. */
#pragma once

#include <stdatomic.h>

#include "sort/base/env.h"
#include "target/sort/part.h"
#include "target/store/list.h"

struct pin_set;

struct sort_pins {
    const struct sort_part *part;
    atomic_ullong series;
    struct pin_set *set; /* NULL: each input has a link */
};

/* `part` is set; done() ends it.  No further link is made after end(). */
void sort_pins_init(struct sort_pins *p);
void sort_pins_end(struct sort_pins *p);
void sort_pins_done(struct sort_pins *p);

typedef int sort_shard_fn(void *arg, const struct sort_shard_info *info, struct error *err);

/* As struct sort_env says of pin_shards() and open_shard().  E_CANCELLED: an input has changed, and
 * its pin is lost; a further attempt pins anew. */
int sort_pins_make(struct sort_pins *p, sort_shard_fn *each, void *arg, struct sort_pinned *pinned,
                   struct error *err);
int sort_pins_open(const struct sort_pins *p, const char *shard, int *fd, struct error *err);

/* Calls fn for page after page of this target's names in a bucket, with or without internal ones
 * (common/internal_name.h); E_ABORTED once stopped. */
int sort_pins_each_page(const struct sort_pins *p, uint64_t bucket_id, const char *prefix,
                        bool skips_internal,
                        int (*fn)(void *ctx, const struct list_page *page, struct error *err),
                        void *ctx, struct error *err);
