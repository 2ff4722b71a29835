#include "cluster/documents/smap_change.h"

#include "cluster/base/document.h"
#include "cluster/base/json_items.h"
#include "cluster/documents/layout.h"
#include "common/jsonx.h"
#include "hrw/hrw.h"

static void smap_begin(struct smap *m, uint64_t version, size_t capacity)
{
    *m = (struct smap){.version = version, .memory = document_new()};
    m->nodes = arena_alloc(document_arena(m->memory), capacity * sizeof m->nodes[0]);
}

static void smap_append(void *to, const void *item)
{
    struct smap *m = to;
    const struct node *n = item;
    struct arena *a = document_arena(m->memory);
    m->nodes[m->count++] = (struct node){
        .id = arena_strdup(a, n->id),
        .role = n->role,
        .state = n->state,
        .public_url = arena_strdup(a, n->public_url),
        .control_url = arena_strdup(a, n->control_url),
        .data_url = arena_strdup(a, n->data_url),
        .weight = n->weight,
        .seed = hrw_seed(n->id),
        .boot = arena_strdup(a, n->boot),
        .since_ms = n->since_ms,
        .lag = n->lag,
        .missed_since = n->missed_since,
        .gone_since = n->gone_since,
        .absent_since = n->absent_since,
    };
}

const char *smap_changed(const struct smap *old, const struct document_change *c, struct smap *next)
{
    smap_begin(next, old->version + 1, old->count + c->put_count);
    const char *missing = document_merge(old->nodes, old->count, sizeof old->nodes[0],
                                         offsetof(struct node, id), c, smap_append, next);
    layout_copy(old, next);
    return missing;
}

void smap_with(const struct smap *old, const struct node *n, struct smap *next)
{
    const struct document_change c = {.put = n, .put_count = 1};
    (void)smap_changed(old, &c, next);
}

void smap_without(const struct smap *old, const char *id, struct smap *next)
{
    const struct document_change c = {.drop = &id, .drop_count = 1};
    (void)smap_changed(old, &c, next);
}

void smap_settled(const struct smap *old, struct smap *next)
{
    const struct document_change c = {0};
    (void)smap_changed(old, &c, next);
    layout_forget(next);
}

json_t *smap_to_json(const struct smap *m)
{
    json_t *nodes = json_array();
    for (size_t i = 0; i < m->count; i++)
        json_array_append_new(nodes, node_to_json(&m->nodes[i]));
    json_t *doc = layout_to_json(m);
    json_object_set_new(doc, "version", json_integer((json_int_t)m->version));
    json_object_set_new(doc, "nodes", nodes);
    return doc;
}

static int smap_nodes_from_json(json_t *nodes, struct smap *out, struct error *err)
{
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        char path[64];
        json_t *item;
        int r = json_item(nodes, "smap.nodes", i, &item, path, err);
        if (r == 0)
            r = node_from_json(item, path, document_arena(out->memory), &out->nodes[i], err);
        if (r != 0)
            return r;
        out->count++;
    }
    const char *twice =
        document_sort(out->nodes, out->count, sizeof out->nodes[0], offsetof(struct node, id));
    if (twice != NULL)
        return error_set(err, E_JSON, "field 'smap.nodes' has node '%s' twice", twice);
    return 0;
}

int smap_from_json(json_t *doc, struct smap *out, struct error *err)
{
    json_t *nodes = NULL;
    uint64_t version;
    int r;
    if ((r = json_need_u64(doc, "smap", "version", &version, err)) != 0 ||
        (r = json_get_array(doc, "smap", "nodes", &nodes, err)) != 0 ||
        (r = json_present(nodes, "smap", "nodes", err)) != 0)
        return r;
    smap_begin(out, version, json_array_size(nodes));
    r = smap_nodes_from_json(nodes, out, err);
    return r != 0 ? r : layout_from_json(doc, out, err);
}
