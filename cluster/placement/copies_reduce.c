#include "cluster/placement/copies_reduce.h"

#include <string.h>

#include "cluster/documents/layout.h"
#include "common/jsonx.h"

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

int copies_reduce_check(const struct cluster_state *s, struct error *err)
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

void copies_reduce_follow(const struct cluster_state *s, struct bucket *b, uint32_t before)
{
    if (b->props.copies < before && b->lowered_from < before)
        b->lowered_from = before;
    if (bucket_has_surplus(b) && b->props.copies != before)
        b->lowered = s->bmd.version + 1;
    if (b->filled > b->props.copies)
        b->filled = b->props.copies;
}

bool copies_reduce_may_end(const struct cluster_state *s, const struct bucket *b)
{
    return bucket_has_surplus(b) && b->filled == b->props.copies && layout_is_settled(&s->smap) &&
           find_wanting(s) == NULL;
}

void copies_reduce_end(struct bucket *b)
{
    b->lowered_from = 0;
    b->lowered = 0;
}

uint64_t copies_reduce_latest(const struct bmd *b)
{
    uint64_t latest = 0;
    for (size_t i = 0; i < b->count; i++)
        latest = b->buckets[i].lowered > latest ? b->buckets[i].lowered : latest;
    return latest;
}

struct copies_reduce_fence copies_reduce_fence(const struct cluster_state *s,
                                               const struct bucket *b)
{
    return (struct copies_reduce_fence){.bucket_id = b->id,
                                        .lowered = b->lowered,
                                        .placed = s->smap.placed,
                                        .lagged = s->smap.lagged};
}

int copies_reduce_check_fence(const struct cluster_state *s, const struct copies_reduce_fence *f,
                              struct error *err)
{
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, f->bucket_id);
    if (b == NULL || !bucket_has_surplus(b) || b->lowered != f->lowered)
        return error_set(
            err, E_STALE_MAP,
            "the bucket's copies have changed, or it was destroyed: a later job continues");
    if (s->smap.placed != f->placed || s->smap.lagged != f->lagged)
        return error_set(err, E_STALE_MAP,
                         "a target has fallen behind or come back, or owners have changed: a later "
                         "job goes on");
    return 0;
}

json_t *copies_reduce_fence_to_json(const struct copies_reduce_fence *f)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "bucket", (json_int_t)f->bucket_id, "lowered",
                     (json_int_t)f->lowered, "placed", (json_int_t)f->placed, "lagged",
                     (json_int_t)f->lagged);
}

int copies_reduce_fence_from_json(json_t *doc, struct copies_reduce_fence *out, struct error *err)
{
    int r;
    *out = (struct copies_reduce_fence){0};
    if ((r = json_need_u64(doc, "spec", "bucket", &out->bucket_id, err)) != 0 ||
        (r = json_need_u64(doc, "spec", "lowered", &out->lowered, err)) != 0 ||
        (r = json_need_u64(doc, "spec", "placed", &out->placed, err)) != 0)
        return r;
    return json_need_u64(doc, "spec", "lagged", &out->lagged, err);
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
bool copies_reduce_shows(const struct cluster_state *s, const struct bucket *b, const char *name,
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

bool copies_reduce_is_stray(const struct cluster_state *s, const struct bucket *b, const char *name,
                            const char *id)
{
    return bucket_has_surplus(b) && !copies_reduce_shows(s, b, name, id);
}
