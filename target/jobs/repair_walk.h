/* How far a repair has come on this target, for the next attempt to go on there: what was compared
 * with the others, or brought to them, is not looked at again.  <mountpath>/.dfc/repair.json, saved
 * now and then, outlives the target.
 *
 *   first    what is left once only, of all buckets in the order of their ids, names in order
 *   second   what was left for later then
 *
 * A name that was passed holds this: all that was here of it was on every target that was asked.
 * It goes on holding
 *
 *   for this target    until the name changes here, which the indexes tell (index/session.h's
 *                      watch, whose number is the walk's).  So a write that was under way when
 *                      this target died is compared again, and one that another target missed while
 *                      it was away.
 *   for another one    as long as it has lost nothing: its floor's steps, which it says
 *                      (dirty_worker.h), are those of then; and where it is another run of it,
 *                      which has forgotten what it wanted mended, its disks and their quarantine,
 *                      too
 *   for all            under the same owners, with the same targets to be asked, and no `copies`
 *                      raised since
 *
 * Anything else begins anew.  So does what follows a job that has finished.  Slices hang on who
 * acts for a name and who has them: they are passed, by whole buckets, only while nobody has fallen
 * behind or come back.
 *
 * Pure; one thread. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "target/format/attr.h"

/* Another target as it was when it was asked. */
struct repair_peer {
    char *id, *boot;
    uint64_t steps;      /* of its floor; REPAIR_UNKNOWN: it did not say */
    uint64_t quarantine; /* of its mountpaths' ids and stamps; 0: unknown */
};

/* What has to be so for what was passed to hold. */
struct repair_need {
    uint64_t placed, lagged, raised; /* smap.placed, smap.lagged, the greatest bucket.raised */
    size_t count;
    struct repair_peer *peers; /* in the order of the map */
};

struct repair_walk {
    uint64_t watch; /* of the indexes; 0: nothing was passed */
    char *job;      /* the last attempt */
    struct repair_need need;
    bool second;
    bool put_off;                 /* the first walk has left something */
    uint64_t bucket_id;           /* what is before it was passed, */
    char name[ATTR_NAME_MAX + 1]; /* and of its names those up to this one */
    uint64_t slices;              /* those of the buckets up to this one were passed */
};

#define REPAIR_ALL INT64_MAX /* no bucket has a greater id */
#define REPAIR_UNKNOWN INT64_MAX

void repair_need_done(struct repair_need *n);
void repair_walk_done(struct repair_walk *w);

/* From the start.  Takes what `need` holds. */
void repair_walk_begin(struct repair_walk *w, uint64_t watch, struct repair_need *need);
/* Goes on by what is needed now, if what was passed holds; false: it has to begin anew. */
bool repair_walk_go_on(struct repair_walk *w, const struct repair_need *now);
/* Was it passed on this walk? */
bool repair_walk_passed(const struct repair_walk *w, uint64_t bucket_id, const char *name);
/* All names up to this one were; one that was passed before is fine. */
void repair_walk_reach(struct repair_walk *w, uint64_t bucket_id, const char *name);
/* From the first to the second. */
void repair_walk_turn(struct repair_walk *w);

json_t *repair_walk_to_json(const struct repair_walk *w);
/* On a zeroed one, which is to be done with also after an error. */
int repair_walk_from_json(struct repair_walk *w, json_t *doc, struct error *err);
