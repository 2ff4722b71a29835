#include "cluster/placement/quorum.h"

#include "cluster/placement/lag.h"

static size_t majority(size_t count)
{
    return count / 2 + 1;
}

bool quorum_is_wanted(const struct bucket *b)
{
    return b->props.copies > 1 && b->props.write_quorum == WRITE_MAJORITY;
}

size_t quorum_of(const struct owners *o)
{
    return majority(o->count);
}

static bool is_heard(const struct node *n, const struct node *const *heard, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (heard[i] == n)
            return !lag_has_lost(n);
    }
    return false;
}

static bool set_is_known(const struct node *const *set, size_t of, size_t need,
                         const struct node *const *heard, size_t count)
{
    size_t known = 0;
    for (size_t i = 0; i < of; i++)
        known += is_heard(set[i], heard, count);
    return known >= need;
}

/* Of an earlier set those may be gone for good that had a write: all who are left are heard, then.
 */
static size_t least_of_earlier(const struct bucket *b, size_t left)
{
    size_t need = majority(b->props.copies);
    return need < left ? need : left;
}

bool quorum_knows(const struct cluster_state *s, const struct bucket *b, const char *name,
                  const struct node *const *heard, size_t count)
{
    struct owners o;
    owners_of(s, b, name, &o);
    bool known = set_is_known(o.all, o.count, quorum_of(&o), heard, count);
    for (size_t i = 0; i < s->smap.earlier_count && known; i++) {
        const struct node *set[OWNERS_MAX];
        size_t left = layout_owners(&s->smap, i, b->id, name, b->props.copies, set);
        known = set_is_known(set, left, least_of_earlier(b, left), heard, count);
    }
    return known;
}

bool quorum_lists(const struct cluster_state *s, const struct bucket *b)
{
    size_t missing = 0, owning = 0;
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[i];
        owning += node_owns(n);
        missing += node_owns(n) && (n->state != NODE_ACTIVE || lag_has_lost(n));
    }
    size_t owners = owning < b->props.copies ? owning : b->props.copies;
    return layout_is_settled(&s->smap) && missing < majority(owners);
}
