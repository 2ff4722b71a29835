/* How far a target's copies may be behind, as the commands on nodes say it in the map.
 *
 *   none ──a new run──▶ restarted ──called unreachable, or back from maintenance──▶ missed
 *     ▲                     │                                                       │
 *     └─────────────────────┴──── CMD_LAG_DONE: a repair has compared ──────────────┘
 *
 * restarted   it has all that was acknowledged, and may have forgotten which writes were under way
 * missed      writes were acknowledged without it, from `missed_since` on; a target that comes back
 *             without its disks (--mountpath-lost-ok) has missed all, since 0
 *
 * A verdict notes it in any cluster; but where no bucket keeps copies nobody's lag outlives the
 * return, and a new run has none.  (A bucket whose `copies` is raised brings its own mark:
 * bucket.filled.)
 *
 * smap.lagged is the fence of a repair: the version with which the last target fell behind, or came
 * back so.  While it stays the same, nobody whom a repair took for good has missed anything since,
 * and nobody is there whom it has not compared.  Pure. */
#pragma once

#include "cluster/documents/state.h"

/* `n` is what the next map shall have of the node that is `known` (or NULL) now: sets its lag.
 * `lost`: it comes without what it had. */
void lag_follow(const struct cluster_state *s, const struct node *known, bool lost, struct node *n);
/* It has begun to be absent, or has ended it, in whatever state: what it misses, or has lost
 * meanwhile (a disk that was given up), is not known. */
void lag_of_absent(const struct cluster_state *s, struct node *n);
/* What became visible with this version of the state it has nothing of. */
void lag_of_missing(struct node *n, uint64_t version);
/* It came without its disks, or has given one up: what it says that it has is not to be counted on
 * until a repair has compared. */
bool lag_has_lost(const struct node *n);
/* Does that move the fence? */
bool lag_is_news(const struct node *n);
/* The greatest `raised` of buckets that are not filled: with the smap's lagged and placed, what a
 * repair is made for.  One that was made for others says nothing about the present. */
uint64_t lag_raised(const struct bmd *b);
/* The version of the state since which a node that is not present has been away. */
uint64_t lag_away_since(const struct node *n);
/* Has every name of the bucket, among its first `filled` owners, one that has missed nothing? */
bool lag_spares_an_owner(const struct cluster_state *s, const struct bucket *b);
/* Has every target what was deleted, so that tombstones may go when they are old?
 *   - Not while objects are on their way.
 *   - Where a bucket keeps copies not while a target is away or is to be compared: it may bring
 *     back what was deleted without it.
 *   - Not where copies may lie that nobody owns (cluster/placement/copies_reduce.h). */
bool lag_lets_forget(const struct cluster_state *s);
/* After a repair of all active targets under the present map: may this one's be taken back?  Not
 * while a target is away that may alone have what this one missed. */
bool lag_may_end(const struct cluster_state *s, const struct node *n);
