/* What a target knows of one bucket with a quota.  Pure; its owner has the lock.
 *
 * No target asks another before a write.  Each knows, bucket by bucket:
 *
 *   own      what its indexes had when they were last counted; before the first count, what the
 *            primary heard last from the run before
 *   open     the growth by uploads that are under way
 *   ended    the growth by uploads that ended since that count began
 *   others   what all other targets have, as the primary said last; nothing before that
 *
 * Their sum is what the bucket uses.  An upload that ends while a count runs may be in the count,
 * too.  It stays in `ended` until the next count: the sum may be too large for one count, never
 * too small for it.
 */
#pragma once

#include "cluster/props/quota.h"

struct quota_ledger {
    bool counted; /* by this run of the target */
    struct quota_amount own, open, others;
    struct quota_amount ended_before, ended_since; /* the count that began last */
};

struct quota_amount quota_own(const struct quota_ledger *l);  /* what this target reports */
struct quota_amount quota_used(const struct quota_ledger *l); /* by the whole bucket */

/* An upload under way grows the bucket by so much more; it ends. */
void quota_open(struct quota_ledger *l, struct quota_amount growth);
void quota_end(struct quota_ledger *l, struct quota_amount growth);
/* A count begins, and ends.  One that fails does not end. */
void quota_count_begins(struct quota_ledger *l);
void quota_count_ends(struct quota_ledger *l, struct quota_amount own);
/* The primary's word: what the others have, and what it heard last from this target. */
void quota_hear(struct quota_ledger *l, struct quota_amount others, struct quota_amount yours);
