#include "cluster/owners.h"

#include <string.h>

#include "cluster/lag.h"

/* How an owner stands in one bucket. */
struct standing {
    enum node_lag lag;
    uint64_t missed_since;
};

static struct standing standing_of(const struct bucket *b, const struct node *n, size_t rank)
{
    if (rank >= b->filled)
        return (struct standing){LAG_MISSED, 0};
    return (struct standing){n->lag, n->missed_since};
}

static bool takes_part(const struct node *n)
{
    return n->state == NODE_ACTIVE && node_is_present(n);
}

static void choose_acting(const struct bucket *b, struct owners *o)
{
    for (size_t i = 0; i < o->count; i++) {
        struct standing s = standing_of(b, o->all[i], i);
        if (takes_part(o->all[i]) && (o->acting == NULL || s.lag < o->lag)) {
            o->acting = o->all[i];
            o->lag = s.lag;
        }
    }
}

/* A set of owners, in rank. */
struct owner_set {
    const struct node *const *nodes;
    size_t count;
};

static bool settles(struct standing x, const struct node *away)
{
    return x.lag != LAG_MISSED || x.missed_since >= lag_away_since(away);
}

/* `may_settle`: the states of those that can be asked. */
static const struct node *find_awaited(const struct bucket *b, const struct owner_set *set,
                                       unsigned may_settle)
{
    for (size_t u = 0; u < set->count; u++) {
        const struct node *away = set->nodes[u];
        bool settled = node_is_present(away);
        for (size_t x = 0; x < set->count && !settled; x++)
            settled = (may_settle & 1u << set->nodes[x]->state) != 0 &&
                      node_is_present(set->nodes[x]) &&
                      settles(standing_of(b, set->nodes[x], x), away);
        if (!settled)
            return away;
    }
    return NULL;
}

/* Who has left in order owns no more, and has what it had. */
static const struct node *find_awaited_earlier(const struct cluster_state *s,
                                               const struct bucket *b, const char *name)
{
    const unsigned may_settle =
        1u << NODE_ACTIVE | 1u << NODE_MAINTENANCE | 1u << NODE_DECOMMISSIONING;
    const struct node *awaited = NULL;
    for (size_t i = 0; i < s->smap.earlier_count && awaited == NULL; i++) {
        const struct node *nodes[OWNERS_MAX];
        struct owner_set set = {.nodes = nodes};
        set.count = layout_owners(&s->smap, i, b->id, name, b->props.copies, nodes);
        awaited = find_awaited(b, &set, may_settle);
    }
    return awaited;
}

void owners_of(const struct cluster_state *s, const struct bucket *b, const char *name,
               struct owners *out)
{
    size_t copies = b->props.copies < OWNERS_MAX ? b->props.copies : OWNERS_MAX;
    *out = (struct owners){0};
    out->count = smap_owners(&s->smap, b->id, name, copies, out->all);
    if (!bucket_has_copies(b)) {
        out->acting = out->count > 0 ? out->all[0] : NULL;
        return;
    }
    choose_acting(b, out);
    const struct owner_set now = {.nodes = out->all, .count = out->count};
    out->awaited = find_awaited(b, &now, 1u << NODE_ACTIVE);
    if (out->awaited == NULL)
        out->awaited = find_awaited_earlier(s, b, name);
}

bool owners_has(const struct owners *o, const char *id)
{
    for (size_t i = 0; i < o->count; i++) {
        if (strcmp(o->all[i]->id, id) == 0)
            return true;
    }
    return false;
}

bool owners_is_good(const struct cluster_state *s, const struct bucket *b, const struct owners *o,
                    const char *id)
{
    for (size_t i = 0; i < o->count; i++) {
        if (strcmp(o->all[i]->id, id) == 0)
            return takes_part(o->all[i]) && layout_is_settled(&s->smap) &&
                   standing_of(b, o->all[i], i).lag == LAG_NONE;
    }
    return false;
}

bool owners_good_suffice(const struct cluster_state *s, const struct bucket *b)
{
    return b->props.copies > 1 && layout_is_settled(&s->smap) && lag_spares_an_owner(s, b);
}

size_t owners_others(const struct owners *o, const char *self, const struct node **out)
{
    size_t count = 0;
    for (size_t i = 0; i < o->count; i++) {
        if (takes_part(o->all[i]) && strcmp(o->all[i]->id, self) != 0)
            out[count++] = o->all[i];
    }
    return count;
}

bool owners_must_compare(const struct cluster_state *s, const struct owners *o)
{
    return o->lag != LAG_NONE || !layout_is_settled(&s->smap);
}

static bool has_node(const struct node *const *nodes, size_t count, const struct node *n)
{
    for (size_t i = 0; i < count; i++) {
        if (nodes[i] == n)
            return true;
    }
    return false;
}

size_t owners_asked(const struct cluster_state *s, const struct bucket *b, const char *name,
                    const char *self, const struct node **out)
{
    const struct node *earlier[OWNERS_MAX * LAYOUTS_MAX];
    struct owners o;
    owners_of(s, b, name, &o);
    size_t count = owners_others(&o, self, out);
    size_t found = layout_ask(&s->smap, b->id, name, b->props.copies, self, false, earlier);
    for (size_t i = 0; i < found; i++) {
        if (node_is_present(earlier[i]) && !has_node(out, count, earlier[i]))
            out[count++] = earlier[i];
    }
    return count;
}

const struct node *owners_not_asked(const struct cluster_state *s, const struct bucket *b,
                                    const char *name)
{
    const struct node *earlier[OWNERS_MAX * LAYOUTS_MAX];
    struct owners o;
    owners_of(s, b, name, &o);
    for (size_t i = 0; i < o.count; i++) {
        if (!takes_part(o.all[i]))
            return o.all[i];
    }
    size_t found = layout_ask(&s->smap, b->id, name, b->props.copies, "", false, earlier);
    for (size_t i = 0; i < found; i++) {
        if (!node_is_present(earlier[i]))
            return earlier[i];
    }
    return NULL;
}
