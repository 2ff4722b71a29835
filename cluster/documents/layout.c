#include "cluster/documents/layout.h"

#include <string.h>

#include "cluster/base/document.h"
#include "cluster/base/json_items.h"
#include "cluster/documents/names.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "hrw/hrw.h"

/* --- sets ------------------------------------------------------------------------------------- */

static struct layout layout_of(const struct smap *m, struct arena *a)
{
    struct layout l = {.number = m->placed,
                       .members = arena_alloc(a, (m->count + 1) * sizeof l.members[0])};
    for (size_t i = 0; i < m->count; i++) {
        const struct node *n = &m->nodes[i];
        if (node_owns(n))
            l.members[l.count++] = (struct layout_member){
                .id = arena_strdup(a, n->id), .weight = n->weight, .seed = n->seed};
    }
    return l;
}

static bool layout_equal(const struct layout *a, const struct layout *b)
{
    bool equal = a->count == b->count;
    for (size_t i = 0; i < a->count && equal; i++)
        equal = a->members[i].weight == b->members[i].weight &&
                strcmp(a->members[i].id, b->members[i].id) == 0;
    return equal;
}

static struct layout layout_dup(const struct layout *from, struct arena *a)
{
    struct layout l = {.number = from->number,
                       .count = from->count,
                       .members = arena_alloc(a, (from->count + 1) * sizeof l.members[0])};
    for (size_t i = 0; i < from->count; i++) {
        l.members[i] = from->members[i];
        l.members[i].id = arena_strdup(a, from->members[i].id);
    }
    return l;
}

static void layouts_begin(struct smap *m)
{
    m->earlier_count = 0;
    m->earlier = arena_alloc(document_arena(m->memory), LAYOUTS_MAX * sizeof m->earlier[0]);
}

void layout_copy(const struct smap *from, struct smap *to)
{
    to->placed = from->placed;
    to->lagged = from->lagged;
    to->earlier_count = 0;
    to->earlier = NULL;
    if (from->earlier_count == 0)
        return;
    layouts_begin(to);
    for (size_t i = 0; i < from->earlier_count; i++)
        to->earlier[to->earlier_count++] =
            layout_dup(&from->earlier[i], document_arena(to->memory));
}

void layout_forget(struct smap *m)
{
    m->earlier_count = 0;
    m->earlier = NULL;
}

/* Of two equal sets the later one says all that both do. */
static void drop_equal(struct smap *m, const struct layout *l)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->earlier_count; i++) {
        if (!layout_equal(&m->earlier[i], l))
            m->earlier[kept++] = m->earlier[i];
    }
    m->earlier_count = kept;
}

int layout_follow(const struct smap *old, struct smap *next, bool remember, struct error *err)
{
    struct arena *a = document_arena(next->memory);
    struct layout before = layout_of(old, a), now = layout_of(next, a);
    if (layout_equal(&before, &now))
        return 0;
    next->placed = next->version;
    if (!remember || before.count == 0)
        return 0;
    if (next->earlier == NULL)
        layouts_begin(next);
    drop_equal(next, &before);
    if (next->earlier_count == LAYOUTS_MAX)
        return error_set(err, E_OVERLOAD,
                         "objects are still to be moved that were placed by %d earlier maps; wait "
                         "for the rebalance (dfcctl job ls --kind rebalance)",
                         LAYOUTS_MAX);
    next->earlier[next->earlier_count++] = before;
    return 0;
}

/* --- whom to ask ------------------------------------------------------------------------------ */

static size_t set_owners(const struct layout *l, uint64_t bucket_id, const char *object, size_t n,
                         const char **ids)
{
    _cleanup_free_ struct hrw_node *nodes = xcalloc(l->count, sizeof *nodes);
    _cleanup_free_ size_t *ranks = xcalloc(l->count, sizeof *ranks);
    for (size_t i = 0; i < l->count; i++)
        nodes[i] = (struct hrw_node){l->members[i].seed, l->members[i].weight};
    uint64_t key = hrw_key(bucket_id, object, strlen(object));
    size_t found = hrw_rank(key, nodes, l->count, n < l->count ? n : l->count, ranks);
    for (size_t i = 0; i < found; i++)
        ids[i] = l->members[ranks[i]].id;
    return found;
}

size_t layout_owners(const struct smap *m, size_t set, uint64_t bucket_id, const char *object,
                     size_t n, const struct node **out)
{
    _cleanup_free_ const char **ids = xcalloc(n, sizeof *ids);
    size_t count = 0, found = set_owners(&m->earlier[set], bucket_id, object, n, ids);
    for (size_t i = 0; i < found; i++) {
        const struct node *node = smap_node(m, ids[i]);
        if (node != NULL)
            out[count++] = node;
    }
    return count;
}

static bool has_node(const struct node *const *nodes, size_t count, const struct node *n)
{
    for (size_t i = 0; i < count; i++) {
        if (nodes[i] == n)
            return true;
    }
    return false;
}

size_t layout_ask(const struct smap *m, uint64_t bucket_id, const char *object, size_t n,
                  const char *self, bool hit, const struct node **out)
{
    _cleanup_free_ const char **ids = xcalloc(n, sizeof *ids);
    size_t count = 0;
    bool was_owner = false;
    for (size_t i = m->earlier_count; i-- > 0;) {
        size_t found = set_owners(&m->earlier[i], bucket_id, object, n, ids);
        for (size_t k = 0; k < found; k++) {
            const struct node *node = smap_node(m, ids[k]);
            was_owner = was_owner || strcmp(ids[k], self) == 0;
            if (node != NULL && strcmp(ids[k], self) != 0 && !has_node(out, count, node))
                out[count++] = node;
        }
    }
    return hit && !was_owner ? 0 : count;
}

/* --- JSON ------------------------------------------------------------------------------------- */

json_t *layout_to_json(const struct smap *m)
{
    json_t *list = json_array();
    for (size_t i = 0; i < m->earlier_count; i++) {
        const struct layout *l = &m->earlier[i];
        json_t *targets = json_array();
        for (size_t k = 0; k < l->count; k++)
            json_array_append_new(targets, json_pack("{s:s, s:I}", "id", l->members[k].id, "weight",
                                                     (json_int_t)l->members[k].weight));
        json_array_append_new(
            list, json_pack("{s:I, s:o}", "number", (json_int_t)l->number, "targets", targets));
    }
    json_t *doc = json_pack("{s:I, s:o}", "placed", (json_int_t)m->placed, "earlier", list);
    if (m->lagged != 0)
        json_object_set_new(doc, "lagged", json_integer((json_int_t)m->lagged));
    return doc;
}

static int member_from_json(json_t *doc, const char *path, struct arena *a,
                            struct layout_member *out, struct error *err)
{
    const char *id;
    uint64_t weight;
    int r;
    if ((r = json_need_str(doc, path, "id", &id, err)) != 0 ||
        (r = json_need_u64(doc, path, "weight", &weight, err)) != 0)
        return r;
    if (node_id_check(id, NULL) != 0 || weight > UINT32_MAX)
        return error_set(err, E_INVALID, "field '%s' has no node's id, or no weight", path);
    *out = (struct layout_member){
        .id = arena_strdup(a, id), .weight = (uint32_t)weight, .seed = hrw_seed(id)};
    return 0;
}

static int one_from_json(json_t *doc, const char *path, struct arena *a, struct layout *out,
                         struct error *err)
{
    json_t *targets = NULL;
    int r;
    if ((r = json_need_u64(doc, path, "number", &out->number, err)) != 0 ||
        (r = json_get_array(doc, path, "targets", &targets, err)) != 0 ||
        (r = json_present(targets, path, "targets", err)) != 0)
        return r;
    out->members = arena_alloc(a, (json_array_size(targets) + 1) * sizeof out->members[0]);
    for (size_t i = 0; i < json_array_size(targets) && r == 0; i++) {
        char item_path[64];
        json_t *item;
        r = json_item(targets, path, i, &item, item_path, err);
        if (r == 0)
            r = member_from_json(item, item_path, a, &out->members[out->count++], err);
    }
    return r;
}

static int versions_from_json(json_t *doc, struct smap *out, struct error *err)
{
    int r = json_get_u64(doc, "smap", "placed", &out->placed, err);
    return r == 0 ? json_get_u64(doc, "smap", "lagged", &out->lagged, err) : r;
}

int layout_from_json(json_t *doc, struct smap *out, struct error *err)
{
    json_t *list = NULL;
    int r;
    if ((r = versions_from_json(doc, out, err)) != 0 ||
        (r = json_get_array(doc, "smap", "earlier", &list, err)) != 0)
        return r;
    layout_forget(out);
    if (json_array_size(list) == 0)
        return 0;
    if (json_array_size(list) > LAYOUTS_MAX)
        return error_set(err, E_INVALID, "field 'smap.earlier' has more than %d sets", LAYOUTS_MAX);
    layouts_begin(out);
    for (size_t i = 0; i < json_array_size(list) && r == 0; i++) {
        char path[64];
        json_t *item;
        struct layout l = {0};
        r = json_item(list, "smap.earlier", i, &item, path, err);
        if (r == 0)
            r = one_from_json(item, path, document_arena(out->memory), &l, err);
        out->earlier[out->earlier_count++] = l;
    }
    return r;
}

/* --- its difference --------------------------------------------------------------------------- */

static const char same[] = "same";

static bool earlier_equal(const struct smap *a, const struct smap *b)
{
    bool equal = a->earlier_count == b->earlier_count;
    for (size_t i = 0; i < a->earlier_count && equal; i++)
        equal = a->earlier[i].number == b->earlier[i].number &&
                layout_equal(&a->earlier[i], &b->earlier[i]);
    return equal;
}

json_t *layout_delta(const struct smap *from, const struct smap *to)
{
    json_t *doc = layout_to_json(to);
    if (to->earlier_count > 0 && earlier_equal(from, to))
        json_object_set_new(doc, "earlier", json_string(same));
    return doc;
}

int layout_patch(json_t *doc, struct smap *m, struct error *err)
{
    const char *word = json_string_value(json_object_get(doc, "earlier"));
    bool is_same = word != NULL && strcmp(word, same) == 0;
    m->placed = m->lagged = 0; /* 0 is left out */
    return is_same ? versions_from_json(doc, m, err) : layout_from_json(doc, m, err);
}
