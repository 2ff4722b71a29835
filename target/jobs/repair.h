/* Repair: what this target has of buckets with several copies is brought to whoever of the owners
 * lacks it (antientropy.h).  When all targets have done so under one map, no owner lacks anything
 * that any other has, and nobody lags any more (cluster/placement/lag.h): the primary says so then.
 *
 * In two walks (antientropy.h): first what is left once only, of all buckets and mountpaths; then,
 * where something else was found lacking, that.  The bytes take their time by the setting
 * repair_rate, also when that is changed meanwhile.
 *
 * What an earlier attempt has compared or brought is not looked at again, as far as it still holds
 * (repair_walk.h).
 *
 * It runs under the set of owners, and the lags, that the job was made for, and ends with
 * E_STALE_MAP when others are in force.  The mountpaths are walked as one row of names, from which
 * a resilver that moves them takes none away (index_merge.h); an index that is made anew is waited
 * for. */
#pragma once

#include <stdint.h>

#include "target/store/job_stop.h"
#include "target/store/job_tally.h"

struct target;

struct repair {
    struct target *target;
    const char *job_id;
    uint64_t placed, lagged; /* smap.placed, smap.lagged */
    struct job_stop *stop;
    struct job_tally *tally;
};

/* 0: all that is here is on all owners that the map does not pass over. */
int repair_run(const struct repair *r, struct error *err);
