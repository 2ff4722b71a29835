#include "cluster/lower.h"

#include <string.h>

#include "cluster/layout.h"

/* Who may have something, and is not to be counted on now. */
static const struct node *find_wanting(const struct cluster_state *s)
{
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[i];
        bool whole = n->state == NODE_ACTIVE && node_is_present(n) && n->lag == LAG_NONE;
        if (n->role == NODE_TARGET && !whole)
            return n;
    }
    return NULL;
}

static const char *what_ails(const struct node *n)
{
    if (n->state != NODE_ACTIVE)
        return node_state_name(n->state);
    return node_is_present(n) ? "to be repaired first" : "without some of its mountpaths";
}

int lower_check(const struct cluster_state *s, struct error *err)
{
    const struct node *wanting = find_wanting(s);
    if (wanting != NULL)
        return error_set(err, E_NODE_STATE,
                         "field 'copies' is lowered only while all targets are there and have what "
                         "they should, and '%s' is %s; wait for it, or take it out of the map",
                         wanting->id, what_ails(wanting));
    if (!layout_is_settled(&s->smap))
        return error_set(err, E_JOB_STATE,
                         "field 'copies' is not lowered while objects are being moved to new "
                         "owners; wait for the end of the rebalance");
    return 0;
}

void lower_follow(const struct cluster_state *s, struct bucket *b, uint32_t before)
{
    if (b->props.copies < before && b->lowered_from < before)
        b->lowered_from = before;
    if (lower_is_open(b) && b->props.copies != before)
        b->lowered = s->bmd.version + 1;
    if (b->filled > b->props.copies)
        b->filled = b->props.copies;
}

uint64_t lower_fence(const struct bmd *b)
{
    uint64_t fence = 0;
    for (size_t i = 0; i < b->count; i++)
        fence = b->buckets[i].lowered > fence ? b->buckets[i].lowered : fence;
    return fence;
}

bool lower_may_end(const struct cluster_state *s, const struct bucket *b)
{
    return lower_is_open(b) && b->filled == b->props.copies && layout_is_settled(&s->smap) &&
           find_wanting(s) == NULL;
}

void lower_end(struct bucket *b)
{
    b->lowered_from = 0;
    b->lowered = 0;
}

static bool has(const struct node *const *nodes, size_t count, const char *id)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(nodes[i]->id, id) == 0)
            return true;
    }
    return false;
}

/* Of owners that a raise has added since what they have may be a stray until they are filled. */
bool lower_shows(const struct cluster_state *s, const struct bucket *b, const char *name,
                 const char *id)
{
    const struct node *nodes[COPIES_MAX];
    size_t count = smap_owners(&s->smap, b->id, name, b->filled, nodes);
    bool shows = has(nodes, count, id);
    for (size_t i = 0; i < s->smap.earlier_count && !shows; i++) {
        count = layout_owners(&s->smap, i, b->id, name, b->filled, nodes);
        shows = has(nodes, count, id);
    }
    return shows;
}
