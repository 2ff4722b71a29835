/* `copies` of a bucket is lowered while it is in use: who owned its names before keeps what it has
 * of them, a *stray*, until the job `trim_copies` has removed it.
 *
 *   props.copies 3 ─▶ 1    lowered_from = 3, lowered = the bmd's version of that
 *   the bucket's job       each target removes what it does not own, and all owners are known
 *                          to have, as new or newer (trim_copies_job.h, trim_copies.h)
 *   CMD_COPIES_LOWERED     no target has any of this bucket: lowered_from = 0
 *
 * Until then the bucket is served as one with several copies, also where it keeps one, and
 *
 *   - the owner that acts is the same by the old and the new number: so it is begun only while all
 *     targets are there, and lag in nothing.  Then the first owner acts, and has all that was
 *     acknowledged, and so have those behind it
 *   - a stray is not read, since no owner asks for it; not listed, since a target shows only what
 *     it owns (copies_reduce_shows()); not written, since an order from before is refused
 *     (state_sync_placement())
 *   - tombstones stay (lag_lets_forget()): who has a stray, and owns the name again by a later map,
 *     or since `copies` was raised again, compares it with them
 *   - the last owner's loss of its disk is not made good from strays: what they have may be old. To
 *     have it all the same `copies` is raised again
 *
 * It ends only when every target of the map is there, and was through under one map: who was away
 * comes back as one that lags, which makes a repair, and then another such job.  Pure. */
#pragma once

#include "cluster/documents/state.h"

/* May it be begun now?  E_NODE_STATE, E_JOB_STATE: what to wait for. */
int copies_reduce_check(const struct cluster_state *s, struct error *err);
/* `b` has other copies than `before` by the next bmd: fewer, or more while there may be strays. */
void copies_reduce_follow(const struct cluster_state *s, struct bucket *b, uint32_t before);
/* Is there something to be removed, and can all be asked about it?  All targets are there, lag in
 * nothing, and nothing is on its way to owners; nor do they wait for what a raise gives them. */
bool copies_reduce_may_end(const struct cluster_state *s, const struct bucket *b);
void copies_reduce_end(struct bucket *b);
/* The greatest `lowered` of all buckets; 0: none has strays. */
uint64_t copies_reduce_latest(const struct bmd *b);

/* For what a job removes strays: of one bucket, as it was lowered last, under the owners and lags
 * of the map.  Where any of these is another now it removes and ends nothing; a later job does. */
struct copies_reduce_fence {
    uint64_t bucket_id, lowered; /* struct bucket */
    uint64_t placed, lagged;     /* struct smap */
};
struct copies_reduce_fence copies_reduce_fence(const struct cluster_state *s,
                                               const struct bucket *b);
/* E_STALE_MAP: it has moved. */
int copies_reduce_check_fence(const struct cluster_state *s, const struct copies_reduce_fence *f,
                              struct error *err);
json_t *copies_reduce_fence_to_json(const struct copies_reduce_fence *f);
int copies_reduce_fence_from_json(json_t *doc, struct copies_reduce_fence *out, struct error *err);

/* May target `id` say that it has the name?  Not what it has as a stray, or may have. */
bool copies_reduce_shows(const struct cluster_state *s, const struct bucket *b, const char *name,
                         const char *id);
/* Is what it has of the name a stray, or may it be one, which is the job's alone to remove? */
bool copies_reduce_is_stray(const struct cluster_state *s, const struct bucket *b, const char *name,
                            const char *id);
