#include "cluster/placement/owners.h"

#include <string.h>

#include "cluster/documents/job.h"
#include "cluster/placement/lag.h"
#include "cluster/placement/copies_reduce.h"

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

/* Who is not there, and nobody can stand in for it; NULL: the acting owner answers. */
static const struct node *owner_away(const struct owners *o)
{
    if (o->awaited != NULL || o->count == 0)
        return o->awaited;
    if (o->acting == NULL)
        return o->all[0];
    return o->acting->state != NODE_ACTIVE ? o->acting : NULL;
}

int owners_find_acting(const struct cluster_state *s, const struct bucket *b, const char *name,
                       struct owners *out, struct error *err)
{
    owners_of(s, b, name, out);
    const struct node *away = owner_away(out);
    if (out->count == 0)
        return error_set(err, E_NO_TARGETS, "the cluster has no target that can own objects");
    if (away != NULL)
        return error_set(err, E_NODE_UNREACHABLE, "target '%s', %s '%s/%.128s', is %s", away->id,
                         out->count == 1 ? "the owner of"
                                         : "the only owner that may have the last version of",
                         b->name, name, node_state_name(away->state));
    return 0;
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

enum node_lag owners_lag(const struct bucket *b, const struct owners *o, const char *id)
{
    for (size_t i = 0; i < o->count; i++) {
        if (strcmp(o->all[i]->id, id) == 0)
            return standing_of(b, o->all[i], i).lag;
    }
    return LAG_NONE;
}

static bool is_made_by_a_job(const struct cluster_state *s, uint64_t bucket_id)
{
    for (size_t i = 0; i < s->jobs.count; i++) {
        if (!job_ended(s->jobs.jobs[i]->state) && job_makes_in(s->jobs.jobs[i], bucket_id))
            return true;
    }
    return false;
}

size_t owners_readers(const struct cluster_state *s, const struct bucket *b, const struct owners *o,
                      const struct node **out)
{
    size_t count = 0;
    if (o->acting == NULL || o->awaited != NULL)
        return 0;
    out[count++] = o->acting;
    if (o->count < 2 || b->props.read_from != READ_ANY || b->props.write_quorum != WRITE_ALL ||
        is_made_by_a_job(s, b->id))
        return count;
    for (size_t i = 0; i < o->count; i++) {
        if (o->all[i] != o->acting && owners_is_good(s, b, o, o->all[i]->id))
            out[count++] = o->all[i];
    }
    return count;
}

bool owners_reads_beside(const struct cluster_state *s, const struct bucket *b,
                         const struct owners *o, const char *id)
{
    const struct node *readers[OWNERS_MAX];
    size_t count = owners_readers(s, b, o, readers);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(readers[i]->id, id) == 0)
            return true;
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

static bool one_knows(const struct bucket *b, const struct owner_set *set,
                      const struct node *const *heard, size_t count)
{
    bool knows = set->count == 0;
    for (size_t i = 0; i < set->count && !knows; i++)
        knows = has_node(heard, count, set->nodes[i]) &&
                standing_of(b, set->nodes[i], i).lag != LAG_MISSED;
    return knows;
}

bool owners_know(const struct cluster_state *s, const struct bucket *b, const char *name,
                 const struct node *const *heard, size_t count)
{
    struct owners o;
    owners_of(s, b, name, &o);
    const struct owner_set present = {.nodes = o.all, .count = o.count};
    bool known = one_knows(b, &present, heard, count);
    for (size_t i = 0; i < s->smap.earlier_count && known; i++) {
        const struct node *nodes[OWNERS_MAX];
        struct owner_set set = {.nodes = nodes};
        set.count = layout_owners(&s->smap, i, b->id, name, b->props.copies, nodes);
        known = one_knows(b, &set, heard, count);
    }
    return known;
}

static bool has_lost(const struct cluster_state *s, const char *id)
{
    const struct node *n = smap_node(&s->smap, id);
    return n != NULL && lag_has_lost(n);
}

static uint64_t raised_latest(const struct bmd *b)
{
    uint64_t latest = 0;
    for (size_t i = 0; i < b->count; i++)
        latest = b->buckets[i].raised > latest ? b->buckets[i].raised : latest;
    return latest;
}

bool owners_are_news(const struct cluster_state *before, const struct cluster_state *now,
                     const char *id)
{
    return before->smap.placed != now->smap.placed ||
           copies_reduce_latest(&before->bmd) != copies_reduce_latest(&now->bmd) ||
           raised_latest(&before->bmd) != raised_latest(&now->bmd) ||
           (has_lost(now, id) && !has_lost(before, id));
}

size_t owners_former(const struct cluster_state *s, const struct bucket *b, const char *name,
                     const char *self, const struct node **out)
{
    const struct node *had[OWNERS_ASKED_MAX];
    struct owners o;
    size_t count = 0;
    if (!bucket_has_surplus(b))
        return 0;
    owners_of(s, b, name, &o);
    size_t found = smap_owners(&s->smap, b->id, name, b->lowered_from, had);
    found += layout_ask(&s->smap, b->id, name, b->lowered_from, self, false, had + found);
    for (size_t i = 0; i < found; i++) {
        bool asks = node_is_present(had[i]) && strcmp(had[i]->id, self) != 0;
        if (asks && !owners_has(&o, had[i]->id) && !has_node(out, count, had[i]))
            out[count++] = had[i];
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
