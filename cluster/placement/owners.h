/* Who owns an object of a bucket with several copies, who of them acts, and who has to be asked.
 *
 *   owners    the `copies` highest-weighted targets of the committed map (smap_owners())
 *   acting    the one of them through which every write and read of the name goes, and which
 *             numbers the writes: the first in rank that is active and does not lag; where all
 *             lag the first active one that restarted, then the first that missed writes
 *   others    the rest of the active owners: a write is on each of them before it is on the
 *             acting one, where it is first seen
 *
 * Only an owner that the map calls unreachable is passed over; what is acknowledged meanwhile it
 * does not have.  The map says so of each target, for all names at once (struct node):
 *
 *   lag           none       it has all that was acknowledged, and knows what is not settled
 *                 restarted  a new run (another boot id) was let in: it has all that was
 *                            acknowledged, but may have forgotten which writes were under way
 *                 missed     it was called unreachable: writes were acknowledged without it
 *   missed_since  with `missed`: version of the state by which it was first called so
 *   gone_since    while unreachable: version of the state by which it was called so this time
 *   absent_since  it is to be passed over as an unreachable one is, though its state is another: an
 *                 active one that lacks mountpaths has missed all; one that left in order, and does
 * not answer, is not asked for what it had
 *
 * Set by the command that commits the new run, or the verdict (the greater lag stays, and the
 * first missed_since); taken back by CMD_LAG_DONE, when a repair has compared what the targets
 * have (cluster/placement/lag.h).  A target that is let in for the first time owned nothing before:
 * none.
 *
 * An unreachable target U may alone have what was acknowledged, unless another owner of that set
 * settles it: one that is active, and has missed nothing, or nothing before U was gone:
 *
 *   X settles U:  X.state == active && (X.lag != missed || X.missed_since >= U.gone_since)
 *
 * With nobody to settle it U is awaited: what it may have is neither read nor overwritten (503
 * that names it).  The same holds for each earlier set of owners that the map remembers
 * (cluster/documents/layout.h), by itself.
 *
 * Where a bucket's `copies` has been raised, the owners behind the first `filled` ones (struct
 * bucket) count, in that bucket, as having missed all that was there before (missed_since 0), until
 * a repair has brought it (CMD_COPIES_FILLED).
 *
 * With one copy there is one owner, which acts whatever its state is, and nobody is asked: those
 * buckets go the ways of smap_owners() and layout_ask().
 *
 * Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cluster/documents/layout.h"
#include "cluster/documents/state.h"

enum {
    OWNERS_MAX = COPIES_MAX,
    OWNERS_ASKED_MAX = OWNERS_MAX * (LAYOUTS_MAX + 1),
};

struct owners {
    size_t count;                       /* at most `copies`: there may be fewer targets */
    const struct node *all[OWNERS_MAX]; /* in rank; the state's */
    const struct node *acting;          /* NULL where none is active */
    enum node_lag lag;                  /* of the acting one, in this bucket */
    const struct node *awaited;         /* or NULL: unreachable, and may alone have the newest */
};

void owners_of(const struct cluster_state *s, const struct bucket *b, const char *name,
               struct owners *out);
/* The same, for a call of a client: 0, and the owner that acts can be asked.  E_NO_TARGETS;
 * E_NODE_UNREACHABLE: it is not active, or one that is awaited is not. */
int owners_find_acting(const struct cluster_state *s, const struct bucket *b, const char *name,
                       struct owners *out, struct error *err);
bool owners_has(const struct owners *o, const char *id);
/* Is it an owner that is active and has all that was acknowledged, so that it may answer a read by
 * itself where it knows of no write of the name that is not settled? */
bool owners_is_good(const struct cluster_state *s, const struct bucket *b, const struct owners *o,
                    const char *id);
/* What it lacks in that bucket, as the map says it; LAG_NONE of one that is no owner. */
enum node_lag owners_lag(const struct bucket *b, const struct owners *o, const char *id);
/* Who may answer a read, the acting one first: it alone, or (`read_from: any`) each good owner,
 * too, but for what a write under way keeps from it, which it knows (docs/design/replication.md,
 * "Any owner"). Not while a job makes objects of the bucket visible, which each owner does when it
 * hears of that. Room for OWNERS_MAX. */
size_t owners_readers(const struct cluster_state *s, const struct bucket *b, const struct owners *o,
                      const struct node **out);
/* Is it one of those that do not act? */
bool owners_reads_beside(const struct cluster_state *s, const struct bucket *b,
                         const struct owners *o, const char *id);
/* Are there, together, all objects of the bucket on the targets that are active and have missed
 * nothing? Where so few others are away or have missed something that every name has one of the
 * former among its owners.  Then a list asks those alone: the others may show what was deleted
 * without them. */
bool owners_good_suffice(const struct cluster_state *s, const struct bucket *b);
/* The active owners but `self`, who take part in a write.  Room for OWNERS_MAX. */
size_t owners_others(const struct owners *o, const char *self, const struct node **out);
/* Must the acting owner compare with others before it answers or writes?  It lags, or objects are
 * still on their way from earlier owners.  (It also must where it knows of a write of the name
 * that is not settled.) */
bool owners_must_compare(const struct cluster_state *s, const struct owners *o);
/* With whom `self` compares then: owners_others() and every active earlier owner, each once.  Room
 * for OWNERS_ASKED_MAX. */
size_t owners_asked(const struct cluster_state *s, const struct bucket *b, const char *name,
                    const char *self, const struct node **out);
/* Do these, who have said what they have of the name, know among them of all that was acknowledged,
 * each write being on all owners that were not passed over?  One of each set has missed nothing. */
bool owners_know(const struct cluster_state *s, const struct bucket *b, const char *name,
                 const struct node *const *heard, size_t count);
/* Who asks target `id` by the state `before`, or an earlier one, would take its answers by `now`
 * for what they are not: owners are others, or it has lost what it had. */
bool owners_are_news(const struct cluster_state *before, const struct cluster_state *now,
                     const char *id);
/* Those that owned the name before `copies` were lowered (cluster/placement/copies_reduce.h), do
 * not now, and may be asked: they have to know that before it is written.  Room for
 * OWNERS_ASKED_MAX. */
size_t owners_former(const struct cluster_state *s, const struct bucket *b, const char *name,
                     const char *self, const struct node **out);
/* An owner, or an earlier one, that is passed over then; NULL: there is none. */
const struct node *owners_not_asked(const struct cluster_state *s, const struct bucket *b,
                                    const char *name);
