#include "cluster/documents/delta.h"

#include <string.h>

#include "cluster/base/document.h"
#include "cluster/documents/layout.h"
#include "cluster/base/json_items.h"
#include "cluster/documents/smap_change.h"
#include "common/jsonx.h"
#include "common/mem.h"

static json_t *part(uint64_t version, size_t count, json_t *put, json_t *drop)
{
    return json_pack("{s:I, s:I, s:o, s:o}", "version", (json_int_t)version, "count",
                     (json_int_t)count, "put", put, "drop", drop);
}

static json_t *smap_delta(const struct smap *from, const struct smap *to)
{
    json_t *put = json_array();
    json_t *drop = json_array();
    for (size_t i = 0; i < to->count; i++) {
        const struct node *old = smap_node(from, to->nodes[i].id);
        if (old == NULL || !node_equal(old, &to->nodes[i]))
            json_array_append_new(put, node_to_json(&to->nodes[i]));
    }
    for (size_t i = 0; i < from->count; i++) {
        if (smap_node(to, from->nodes[i].id) == NULL)
            json_array_append_new(drop, json_string(from->nodes[i].id));
    }
    json_t *delta = part(to->version, to->count, put, drop);
    _cleanup_json_ json_t *layout = layout_delta(from, to);
    json_object_update(delta, layout);
    return delta;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool bucket_equal(const struct bucket *a, const struct bucket *b)
{
    return a->id == b->id && a->created_ms == b->created_ms && same_text(a->owner, b->owner) &&
           a->filled == b->filled && a->raised == b->raised && a->lowered_from == b->lowered_from &&
           a->lowered == b->lowered && a->closed == b->closed &&
           bucket_props_equal(&a->props, &b->props) && bucket_texts_equal(&a->texts, &b->texts);
}

static json_t *bmd_delta(const struct bmd *from, const struct bmd *to)
{
    json_t *put = json_array();
    json_t *drop = json_array();
    for (size_t i = 0; i < to->count; i++) {
        const struct bucket *old = bmd_bucket(from, to->buckets[i].name);
        if (old == NULL || !bucket_equal(old, &to->buckets[i]))
            json_array_append_new(put, bucket_to_json(&to->buckets[i]));
    }
    for (size_t i = 0; i < from->count; i++) {
        if (bmd_bucket(to, from->buckets[i].name) == NULL)
            json_array_append_new(drop, json_string(from->buckets[i].name));
    }
    return part(to->version, to->count, put, drop);
}

static json_t *config_delta(const struct cluster_config *from, const struct cluster_config *to)
{
    json_t *put = json_object();
    json_t *drop = json_array();
    for (size_t i = 0; i < to->count; i++) {
        const char *old = config_get(from, to->values[i].name);
        if (old == NULL || strcmp(old, to->values[i].text) != 0)
            json_object_set_new(put, to->values[i].name, json_string(to->values[i].text));
    }
    for (size_t i = 0; i < from->count; i++) {
        if (config_get(to, from->values[i].name) == NULL)
            json_array_append_new(drop, json_string(from->values[i].name));
    }
    return part(to->version, to->count, put, drop);
}

/* Jobs that keep their order stay where they are.  From the first one of `to` that does not, all
 * are put anew: an id that was dropped and used again has lost its place. */
static json_t *jobs_delta(const struct jobs *from, const struct jobs *to)
{
    json_t *put = json_array();
    json_t *drop = json_array();
    size_t kept = 0;
    for (size_t i = 0; i < from->count; i++) {
        const struct job *old = from->jobs[i];
        if (kept == to->count || strcmp(old->id, to->jobs[kept]->id) != 0) {
            json_array_append_new(drop, json_string(old->id));
            continue;
        }
        if (!job_equal(old, to->jobs[kept]))
            json_array_append_new(put, job_to_json(to->jobs[kept]));
        kept++;
    }
    for (size_t i = kept; i < to->count; i++)
        json_array_append_new(put, job_to_json(to->jobs[i]));
    return part(to->version, to->count, put, drop);
}

static json_t *users_delta(const struct access *from, const struct access *to)
{
    json_t *put = json_array();
    json_t *drop = json_array();
    for (size_t i = 0; i < to->user_count; i++) {
        const struct user *old = access_user(from, to->users[i].name);
        if (old == NULL || !user_equal(old, &to->users[i]))
            json_array_append_new(put, user_to_json(&to->users[i], ACCESS_WHOLE));
    }
    for (size_t i = 0; i < from->user_count; i++) {
        if (access_user(to, from->users[i].name) == NULL)
            json_array_append_new(drop, json_string(from->users[i].name));
    }
    return part(to->version, to->user_count, put, drop);
}

static json_t *roles_delta(const struct access *from, const struct access *to)
{
    json_t *put = json_array();
    json_t *drop = json_array();
    for (size_t i = 0; i < to->role_count; i++) {
        const struct role *old = access_role(from, to->roles[i].name);
        if (old == NULL || !role_equal(old, &to->roles[i]))
            json_array_append_new(put, role_to_json(&to->roles[i]));
    }
    for (size_t i = 0; i < from->role_count; i++) {
        if (access_role(to, from->roles[i].name) == NULL)
            json_array_append_new(drop, json_string(from->roles[i].name));
    }
    return part(to->version, to->role_count, put, drop);
}

json_t *state_delta(const struct cluster_state *from, const struct cluster_state *to)
{
    json_t *delta =
        json_pack("{s:I, s:I, s:I, s:I, s:s}", "term", (json_int_t)to->term, "version",
                  (json_int_t)to->version, "term_version", (json_int_t)to->term_version,
                  "next_bucket_id", (json_int_t)to->next_bucket_id, "primary", to->primary);
    if (from->smap.version != to->smap.version)
        json_object_set_new(delta, "smap", smap_delta(&from->smap, &to->smap));
    if (from->bmd.version != to->bmd.version)
        json_object_set_new(delta, "bmd", bmd_delta(&from->bmd, &to->bmd));
    if (from->config.version != to->config.version)
        json_object_set_new(delta, "config", config_delta(&from->config, &to->config));
    if (from->jobs.version != to->jobs.version)
        json_object_set_new(delta, "jobs", jobs_delta(&from->jobs, &to->jobs));
    if (from->access.version != to->access.version) {
        json_object_set_new(delta, "users", users_delta(&from->access, &to->access));
        json_object_set_new(delta, "roles", roles_delta(&from->access, &to->access));
    }
    return delta;
}
