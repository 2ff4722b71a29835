/* Rebalance: this target sends what another one owns by the present map to that owner.
 *
 *   look   the names that are another target's by HRW: of all mountpaths as one row, from which a
 *          resilver that moves them takes none away (index_merge.h)
 *   send   bytes, attribute and version, as they are: durable before the answer (object_copy.h)
 *   keep   rebalance_keep, for the pages of lists that were begun before (proxy/list/merge.h)
 *   drop   the copy here, unless it has changed
 *
 * It runs under the set of owners that the job was made for, and ends with E_STALE_MAP when another
 * one is in force: the job of that one goes on.  A pass that finds nothing is the last.  What is
 * sent, kept and dropped is not remembered over a restart: it is sent again, the owner has it
 * (304), and it is kept anew.
 *
 * Of several sets of earlier owners the other ones are asked first (earlier_owners.h): what is not
 * the greatest version is not sent but dropped.  So what an owner was sent is the newest that there
 * was, and a tombstone travels like an object.  A job's marks are waited for; a damaged object
 * stays, is still read through its owner, and fails the job. */
#pragma once

#include "target/store/job_stop.h"
#include "target/store/job_tally.h"
#include "target/copies/object_copy.h"

struct target;

struct rebalance {
    struct target *target;
    uint64_t placed; /* the owners: smap.placed */
    struct object_copier *copier;
    struct job_stop *stop;
    struct job_tally *tally;
};

/* 0: nothing of others is here any more. */
int rebalance_run(const struct rebalance *r, struct error *err);
