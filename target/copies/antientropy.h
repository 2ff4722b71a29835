/* Sees to it that all owners have what this target has, of one bucket with several copies: for the
 * repair (repair.h) and the rebalance (rebalance.h).
 *
 *   look   the names of an index, with their versions, many at once
 *   ask    each other active owner which of them it has, as new or newer (dirty_worker.h)
 *   see    what somebody lacks the owner that acts for the name brings to all (copies.h)
 *   again  until nobody lacks any; those that resist are set aside until the others are there,
 *          and if they still do they count as failed
 *   pay    what was brought takes its time, by the job's rate
 *
 * What this target lacks the others find in theirs.  So when all targets have gone through theirs,
 * under one map, each owner has what the greatest of all has; tombstones go the same way.  So does
 * what a job has made, from the decision to commit it on, whether its mark is off yet or not: whom
 * the job went on without lacks it.
 *
 * Waits: for a job's thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cluster/documents/state.h"
#include "target/store/job_pace.h"
#include "target/store/job_stop.h"
#include "target/store/job_tally.h"
#include "target/disk/mountpath.h"
#include "target/format/version.h"

struct target;

/* Of a walk that goes on where it was. */
struct antientropy_walk {
    /* Has the name been passed already, so that nothing is asked about it? */
    bool (*passed)(void *ctx, uint64_t bucket_id, const char *name);
    /* All names up to this one have been seen to … */
    void (*reached)(void *ctx, uint64_t bucket_id, const char *name);
    /* … but for those that could not be. */
    void (*resists)(void *ctx, uint64_t bucket_id, const char *name);
};

struct antientropy {
    struct target *target;
    struct job_stop *stop;
    struct job_tally *tally;
    struct job_pace *pace; /* of the bytes that somebody lacks */
    /* May it go on by this state? */
    int (*check)(void *ctx, const struct cluster_state *s, struct error *err);
    /* Each owner has this, and this target is none of them.  NULL: nothing is done about it, and an
     * owner that is away is left out. */
    void (*strange)(void *ctx, uint64_t bucket_id, const char *name, const struct version *v);
    /* Is this name, which this target does not own, to be passed over?  NULL: none is. */
    bool (*passes)(void *ctx, const struct cluster_state *s, const struct bucket *b,
                   const char *name);
    const struct antientropy_walk *walk; /* or NULL: all of them */
    void *ctx;
    /* NULL, or: names of which another owner has a whole copy, too, and those of more than k slices
     * are left for a later walk, and *put_off is set. */
    bool *put_off;
};

/* Of one mountpath; or, with NULL, of all as one row, from which a resilver takes nothing away.
 * E_ABORTED; what check() says; why an index cannot be relied on. */
int antientropy_bucket(const struct antientropy *s, struct mountpath *mp, uint64_t bucket_id,
                       struct error *err);
