/* Telling the other owners of a name to commit a write (copies.h), and going on until each of them
 * has, or has refused for good, or is passed over by the map, or patience ends (call_timeout).
 *
 *   answer                       what it means
 *   204, 304                     it has it, or something later
 *   stale_map, not_ready,        not now: once more, with a newer state where there is one, for
 *   overloaded, not sent         as long as this target acts by it
 *   not_found                    its stage is gone: by a commit, which is asked, or for good
 *   others, or none              it may have it: once more
 *   any, to a repeated call      the same: an earlier sending may have been carried out, and this
 *                                answer says nothing of that (http_result.repeated)
 *
 * Waits: for threads of the copies' pool. */
#pragma once

#include "cluster/placement/owners.h"
#include "target/copies/plan.h"
#include "target/store/object.h"

struct target;

struct copies_order {
    struct target *target;
    uint64_t bucket_id;
    const char *name;
    const struct cluster_state *state; /* a reference; by which it was decided */
    const char *stage;                 /* NULL: a tombstone */
    struct object_moved as;
    size_t count;
    const struct node *others[OWNERS_MAX]; /* the state's */
    bool left_out[OWNERS_MAX];             /* not told: it has not staged it */
    size_t needs;                          /* how many have to have it; copies/plan.h */
    /* Outcome. */
    enum copy_fate fates[OWNERS_MAX];
    bool made; /* somebody has it, or may have it */
};

/* 0: each of the others has it, or is passed over; or as many as it needs, and then the slowest is
 * not waited for.  E_IN_DOUBT; or why it has failed for certain. */
int copies_commit_others(struct copies_order *o, struct error *err);
/* After that: how many of these have it, this target left out?  And has somebody not? */
size_t copies_order_made(const struct copies_order *o, const struct owners *owners);
bool copies_order_lacks(const struct copies_order *o);
/* The newest state that can be had, for somebody else has a newer one. */
void copies_refresh(struct target *t);
bool copies_order_has(const struct copies_order *o, const char *node_id);

/* A write in doubt whose leader leads its name no more: has the next leader brought it to all
 * owners?  A client that reads there sees it, so that it may be acknowledged.
 *
 *   the next leader                           outcome
 *   has settled the name, and has this        made
 *   has settled it, and has something later   in doubt: a condition may have been judged without it
 *   has not settled it, or does not answer    asked again, by the state in force, for call_timeout
 *   settles nothing by this state             in doubt: it lags, or objects are moving
 *   is this target, or the bucket is gone     in doubt
 *
 * Waits. */
bool copies_next_leader_has(struct target *t, uint64_t bucket_id, const char *name,
                            const struct version *v);
