#include "cluster/documents/config.h"

#include <string.h>

#include "cluster/base/document.h"
#include "cluster/base/json_items.h"
#include "common/jsonx.h"

static size_t config_find(const struct cluster_config *c, const char *name, bool *found)
{
    return document_find(c->values, c->count, sizeof c->values[0],
                         offsetof(struct config_value, name), name, found);
}

const char *config_get(const struct cluster_config *c, const char *name)
{
    bool found;
    size_t at = config_find(c, name, &found);
    return found ? c->values[at].text : NULL;
}

static void config_begin(struct cluster_config *c, uint64_t version, size_t capacity)
{
    *c = (struct cluster_config){.version = version, .memory = document_new()};
    c->values = arena_alloc(document_arena(c->memory), capacity * sizeof c->values[0]);
}

static void config_append(void *to, const void *item)
{
    struct cluster_config *c = to;
    const struct config_value *v = item;
    struct arena *a = document_arena(c->memory);
    c->values[c->count++] = (struct config_value){
        .name = arena_strdup(a, v->name),
        .text = arena_strdup(a, v->text),
    };
}

const char *config_changed(const struct cluster_config *old, const struct document_change *c,
                           struct cluster_config *next)
{
    config_begin(next, old->version + 1, old->count + c->put_count);
    return document_merge(old->values, old->count, sizeof old->values[0],
                          offsetof(struct config_value, name), c, config_append, next);
}

void config_with(const struct cluster_config *old, const char *name, const char *text,
                 struct cluster_config *next)
{
    const struct config_value value = {name, text};
    const struct document_change c = {.put = &value, .put_count = 1};
    (void)config_changed(old, &c, next);
}

void config_without(const struct cluster_config *old, const char *name, struct cluster_config *next)
{
    const struct document_change c = {.drop = &name, .drop_count = 1};
    (void)config_changed(old, &c, next);
}

json_t *config_to_json(const struct cluster_config *c)
{
    json_t *values = json_object();
    for (size_t i = 0; i < c->count; i++)
        json_object_set_new(values, c->values[i].name, json_string(c->values[i].text));
    return json_pack("{s:I, s:o}", "version", (json_int_t)c->version, "values", values);
}

static int config_values_from_json(json_t *values, struct cluster_config *out, struct error *err)
{
    const char *name;
    json_t *value;
    json_object_foreach(values, name, value)
    {
        if (!json_is_string(value))
            return error_set(err, E_JSON, "field 'config.values.%.64s' must be a string", name);
        const struct config_value item = {name, json_string_value(value)};
        config_append(out, &item);
    }
    (void)document_sort(out->values, out->count, sizeof out->values[0],
                        offsetof(struct config_value, name)); /* an object has no name twice */
    return 0;
}

int config_from_json(json_t *doc, struct cluster_config *out, struct error *err)
{
    json_t *values = NULL;
    uint64_t version;
    int r;
    if ((r = json_need_u64(doc, "config", "version", &version, err)) != 0 ||
        (r = json_get_object(doc, "config", "values", &values, err)) != 0 ||
        (r = json_present(values, "config", "values", err)) != 0)
        return r;
    config_begin(out, version, json_object_size(values));
    return config_values_from_json(values, out, err);
}
