/* Where `copies` of a bucket was lowered (cluster/lower.h), this target removes what it does not
 * own any more, once all owners were asked, and have what is here or more (spread.h).  What one of
 * them lacks stays, and fails the job: it may be the last copy, or a write that nobody was told of.
 *
 * It runs under the set of owners, and the lags, that the job was made for, and ends with
 * E_STALE_MAP when others are in force; with E_NOT_READY where a resilver moves names, or has. */
#pragma once

#include <stdint.h>

#include "target/job_stop.h"
#include "target/job_tally.h"

struct target;

struct mirror {
    struct target *target;
    uint64_t placed, lagged, lowered; /* smap.placed, smap.lagged, lower_fence() */
    struct job_stop *stop;
    struct job_tally *tally;
};

/* 0: nothing is left here of what such buckets had more. */
int mirror_run(const struct mirror *m, struct error *err);
