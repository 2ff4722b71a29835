/* One lane: an append-only log of samples of a ring on one mountpath.
 *
 *   <path>/.dfc/ring/<bucket id>/<lane>/<first ordinal>.seg      ring/segment.h
 *
 * A lane is appended to by the run of the target that made it, and by no later one: what a loss of
 * power took from its end is never overwritten, so that an ordinal never means two samples.  Later
 * runs open it closed, cut its torn end, and read.  Damage takes the samples that it is in: they
 * are *holes*, which no generation gets from then on.
 *
 *   written  ordinals that have a place in a file
 *   count    those that are acknowledged: with `sync` they are on the disk
 *
 * Samples are removed by whole segments, `grace` after no kept generation needs any of them.
 * A lane without segments that is closed is drained.
 *
 * Locks: `append` (one append at a time, held while the disk writes) before `lock`. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "ring/frame.h"
#include "ring/keeper.h"
#include "target/disk/mountpaths.h"

struct lane;

struct lane_place {
    const char *target_id;
    const struct mountpath_set *set; /* it has the mountpath open; a reference is taken */
    struct mountpath *mp;
    uint64_t bucket_id;
};

/* A new one, open.  Its directory is on the disk. */
int lane_make(const struct lane_place *place, struct lane **out, struct error *err);
/* Told of each sample that is found, in order. */
typedef void lane_seen_fn(void *ctx, const char *lane, const struct frame *f);
/* One of an earlier run: `dir` is the name of its directory.  Closed. */
int lane_open(const struct lane_place *place, const char *dir, lane_seen_fn *seen, void *ctx,
              struct lane **out, struct error *err);
struct lane *lane_ref(struct lane *l);
void lane_unref(struct lane *l);
DEFINE_CLEANUP(struct lane, lane_unref);

const char *lane_name(const struct lane *l);
struct mountpath *lane_mountpath(const struct lane *l);
/* Another set that has the same mountpath open. */
void lane_keep_set(struct lane *l, const struct mountpath_set *set);

struct lane_push {
    char *frames; /* checked; ordinals, flags, producer and sequence are written into them */
    size_t len;
    uint64_t count, producer, sequence;
    bool sync;
    bool drops;             /* where the ring is full: the oldest samples that no generation has */
    uint64_t segment_bytes; /* a segment that has as many is followed by another one */
};
/* All of the push, or nothing.  Waits for the disk.  E_CANCELLED: the lane is closed. */
int lane_append(struct lane *l, const struct lane_push *push, uint64_t *first, struct error *err);
void lane_close(struct lane *l); /* no more is appended */
bool lane_is_closed(struct lane *l);

void lane_report(struct lane *l, struct ring_report *out);
uint64_t lane_bytes(struct lane *l); /* of its files */
/* Without those files that nobody needs, which go when their grace is over. */
uint64_t lane_bytes_staying(struct lane *l);

struct lane_range {
    int fd; /* the caller's */
    uint64_t offset, length, count;
};
/* At most `count` samples from `ordinal` on that stand one behind the other in a file, but at least
 * one.  E_GENERATION_GONE: if damage has taken it, out->count is how many it has taken from it on;
 * else 0. */
int lane_find(struct lane *l, uint64_t ordinal, uint64_t count, struct lane_range *out,
              struct error *err);

/* No kept generation needs the ordinals before `release`. */
void lane_release(struct lane *l, uint64_t release, uint64_t now_ms, uint64_t grace_ms);
/* Ordinals [sealed, taken) are of no generation, and will be of none: they may go at once. */
void lane_drop(struct lane *l, uint64_t sealed, uint64_t taken);
/* To where samples would have to be dropped to get rid of the oldest file that has none of a
 * generation, and the bytes of it; 0: there is no such file. */
uint64_t lane_drop_to(struct lane *l, uint64_t *bytes);
/* Removes the directory of a lane that is drained. */
int lane_remove(struct lane *l, struct error *err);

/* Directories below .dfc/ring of a mountpath: buckets, and lanes of one (bucket_id not 0). */
char *lanes_dir(const struct mountpath *mp, uint64_t bucket_id);
int lanes_each(const struct mountpath *mp, uint64_t bucket_id,
               int (*fn)(void *ctx, const char *dir, struct error *err), void *ctx,
               struct error *err);
