/* Where `copies` of a bucket was lowered (cluster/placement/copies_reduce.h), this target removes
 * what it does not own any more, once all owners were asked, and have what is here or more
 * (antientropy.h). What one of them lacks stays, and fails the job: it may be the last copy, or a
 * write that nobody was told of.
 *
 * It ends with E_STALE_MAP when what the job was made for is not so any more. */
#pragma once

#include "cluster/placement/copies_reduce.h"
#include "target/store/job_stop.h"
#include "target/store/job_tally.h"

struct target;

struct trim_copies {
    struct target *target;
    struct copies_reduce_fence fence;
    struct job_stop *stop;
    struct job_tally *tally;
};

/* 0: nothing is left here of what the bucket had more. */
int trim_copies_run(const struct trim_copies *m, struct error *err);
