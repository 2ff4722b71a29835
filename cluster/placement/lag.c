#include "cluster/placement/lag.h"

#include <string.h>

#include "cluster/documents/layout.h"
#include "cluster/placement/copies_reduce.h"
#include "cluster/documents/smap_change.h"

static void misses(struct node *n, uint64_t since)
{
    if (n->lag != LAG_MISSED)
        n->missed_since = since;
    n->lag = LAG_MISSED;
}

/* One that leaves in order has all that was acknowledged while it was an owner, and is asked for it
 * (cluster/documents/layout.h); what it misses begins to count when it owns again. */
static void goes_away(struct node *n, uint64_t version)
{
    n->gone_since = version;
    if (n->state == NODE_UNREACHABLE)
        misses(n, version);
}

static void forgets(struct node *n)
{
    n->lag = LAG_NONE;
    n->missed_since = 0;
}

static void is_here(const struct cluster_state *s, const struct node *known, struct node *n)
{
    n->gone_since = 0;
    if (known->state != NODE_ACTIVE)
        misses(n, known->gone_since);
    if (!bmd_has_copies(&s->bmd))
        forgets(n);
    else if (n->lag == LAG_NONE && strcmp(known->boot, n->boot) != 0)
        n->lag = LAG_RESTARTED;
}

void lag_follow(const struct cluster_state *s, const struct node *known, bool lost, struct node *n)
{
    n->lag = known != NULL ? known->lag : LAG_NONE;
    n->missed_since = known != NULL ? known->missed_since : 0;
    n->gone_since = known != NULL ? known->gone_since : 0;
    n->absent_since = known != NULL ? known->absent_since : 0;
    if (known != NULL && known->state == NODE_UNREACHABLE && n->state != NODE_ACTIVE)
        n->absent_since = s->version + 1; /* it leaves, and does not answer */
    if (n->role != NODE_TARGET || known == NULL)
        return;
    if (lost && strcmp(known->boot, n->boot) != 0) {
        n->lag = LAG_MISSED;
        n->missed_since = 0;
    }
    if (n->state == NODE_ACTIVE)
        is_here(s, known, n);
    else if (known->state == NODE_ACTIVE)
        goes_away(n, s->version + 1);
}

void lag_of_absent(const struct cluster_state *s, struct node *n)
{
    if (bmd_has_copies(&s->bmd)) {
        n->lag = LAG_MISSED;
        n->missed_since = 0;
    }
}

void lag_of_missing(struct node *n, uint64_t version)
{
    misses(n, version);
}

static bool is_whole(const struct node *n)
{
    return n->role != NODE_TARGET || (n->state == NODE_ACTIVE && n->lag == LAG_NONE);
}

bool lag_lets_forget(const struct cluster_state *s)
{
    bool whole = true;
    if (!layout_is_settled(&s->smap))
        return false;
    if (!bmd_has_copies(&s->bmd))
        return true;
    for (size_t i = 0; i < s->smap.count; i++)
        whole = whole && is_whole(&s->smap.nodes[i]);
    for (size_t i = 0; i < s->bmd.count; i++)
        whole = whole && s->bmd.buckets[i].filled == s->bmd.buckets[i].props.copies;
    return whole && copies_reduce_latest(&s->bmd) == 0;
}

bool lag_has_lost(const struct node *n)
{
    return n->lag == LAG_MISSED && n->missed_since == 0;
}

bool lag_is_news(const struct node *n)
{
    return n->lag != LAG_NONE;
}

uint64_t lag_raised(const struct bmd *b)
{
    uint64_t raised = 0;
    for (size_t i = 0; i < b->count; i++) {
        const struct bucket *one = &b->buckets[i];
        if (one->filled < one->props.copies && one->raised > raised)
            raised = one->raised;
    }
    return raised;
}

uint64_t lag_away_since(const struct node *n)
{
    if (n->absent_since == 0 || (n->gone_since != 0 && n->gone_since < n->absent_since))
        return n->gone_since;
    return n->absent_since;
}

/* Has `n` all that `away` may have: did it miss nothing before that was gone? */
static bool settles(const struct node *n, const struct node *away)
{
    return n->lag != LAG_MISSED || n->missed_since >= lag_away_since(away);
}

bool lag_may_end(const struct cluster_state *s, const struct node *n)
{
    bool may = n->state == NODE_ACTIVE && n->absent_since == 0 && n->lag != LAG_NONE;
    for (size_t i = 0; i < s->smap.count && may; i++) {
        const struct node *away = &s->smap.nodes[i];
        may = away->role != NODE_TARGET || node_is_present(away) || settles(n, away);
    }
    return may;
}

bool lag_spares_an_owner(const struct cluster_state *s, const struct bucket *b)
{
    size_t owners = 0, without = 0;
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[i];
        bool had = n->role == NODE_TARGET && !node_owns(n) && !layout_is_settled(&s->smap);
        owners += node_owns(n) || had;
        without += (node_owns(n) || had) && (n->lag == LAG_MISSED || !node_is_present(n));
    }
    return without < b->filled && without < owners;
}
