#include "cluster/documents/delta.h"

#include <string.h>

#include "cluster/base/document.h"
#include "cluster/documents/layout.h"
#include "cluster/base/json_items.h"
#include "cluster/documents/smap_change.h"
#include "common/jsonx.h"
#include "common/mem.h"

/* --- the difference -------------------------------------------------------------------------- */

static json_t *part(uint64_t version, json_t *put, json_t *drop)
{
    return json_pack("{s:I, s:o, s:o}", "version", (json_int_t)version, "put", put, "drop", drop);
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
    json_t *delta = part(to->version, put, drop);
    _cleanup_json_ json_t *layout = layout_to_json(to);
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
    return part(to->version, put, drop);
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
    return part(to->version, put, drop);
}

/* So many of the first jobs of `to` are in `from`, in the same order.  An id that was dropped and
 * used again has lost its place: the job is dropped and put, and so are all that follow. */
static size_t jobs_in_place(const struct jobs *from, const struct jobs *to)
{
    size_t count = 0;
    for (size_t i = 0; i < from->count && count < to->count; i++) {
        if (strcmp(from->jobs[i]->id, to->jobs[count]->id) == 0)
            count++;
        else if (jobs_find(to, from->jobs[i]->id) != NULL)
            break;
    }
    return count;
}

static json_t *jobs_delta(const struct jobs *from, const struct jobs *to)
{
    json_t *put = json_array();
    json_t *drop = json_array();
    size_t in_place = jobs_in_place(from, to);
    for (size_t i = 0; i < to->count; i++) {
        const struct job *old = jobs_find(from, to->jobs[i]->id);
        if (old == NULL || i >= in_place || !job_equal(old, to->jobs[i]))
            json_array_append_new(put, job_to_json(to->jobs[i]));
        if (old != NULL && i >= in_place)
            json_array_append_new(drop, json_string(old->id));
    }
    for (size_t i = 0; i < from->count; i++) {
        if (jobs_find(to, from->jobs[i]->id) == NULL)
            json_array_append_new(drop, json_string(from->jobs[i]->id));
    }
    return part(to->version, put, drop);
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
    return part(to->version, put, drop);
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
    return part(to->version, put, drop);
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

/* --- and back -------------------------------------------------------------------------------- */

/* Puts one item into, or drops one name from, the sub-document of `s` that `patch` is for. */
struct part_ops {
    const char *field;
    int (*put)(struct cluster_state *s, json_t *item, const char *path, struct error *err);
    void (*drop)(struct cluster_state *s, const char *name);
    void (*set_version)(struct cluster_state *s, uint64_t version);
    int (*rest)(struct cluster_state *s, json_t *patch, struct error *err); /* or NULL */
    bool whole; /* put() takes all items at once */
};

static int smap_put(struct cluster_state *s, json_t *item, const char *path, struct error *err)
{
    struct arena *scratch = arena_new(512);
    struct node n;
    int r = node_from_json(item, path, scratch, &n, err);
    if (r == 0) {
        struct smap next;
        smap_with(&s->smap, &n, &next);
        document_unref(s->smap.memory);
        s->smap = next;
    }
    arena_free(scratch);
    return r;
}

static void smap_drop(struct cluster_state *s, const char *name)
{
    struct smap next;
    smap_without(&s->smap, name, &next);
    document_unref(s->smap.memory);
    s->smap = next;
}

static void smap_set_version(struct cluster_state *s, uint64_t version)
{
    s->smap.version = version;
}

/* The sub-document is this state's alone only after a change: a patch without one makes it so. */
static int smap_rest(struct cluster_state *s, json_t *patch, struct error *err)
{
    struct smap next;
    smap_settled(&s->smap, &next);
    int r = layout_from_json(patch, &next, err);
    document_unref(s->smap.memory);
    s->smap = next;
    return r;
}

static int bmd_put(struct cluster_state *s, json_t *item, const char *path, struct error *err)
{
    struct arena *scratch = arena_new(512);
    struct bucket b;
    int r = bucket_from_json(item, path, scratch, &b, err);
    if (r == 0) {
        struct bmd next;
        bmd_with(&s->bmd, &b, &next);
        document_unref(s->bmd.memory);
        s->bmd = next;
    }
    arena_free(scratch);
    return r;
}

static void bmd_drop(struct cluster_state *s, const char *name)
{
    struct bmd next;
    bmd_without(&s->bmd, name, &next);
    document_unref(s->bmd.memory);
    s->bmd = next;
}

static void bmd_set_version(struct cluster_state *s, uint64_t version)
{
    s->bmd.version = version;
}

static int jobs_put(struct cluster_state *s, json_t *item, const char *path, struct error *err)
{
    struct job *job;
    int r = job_from_json(item, &job, err);
    if (r != 0) {
        error_wrap(err, "%s", path);
        return r;
    }
    struct jobs next;
    jobs_with(&s->jobs, job, &next);
    job_unref(job);
    document_unref(s->jobs.memory);
    s->jobs = next;
    return 0;
}

static void jobs_drop(struct cluster_state *s, const char *name)
{
    struct jobs next;
    jobs_without(&s->jobs, name, &next);
    document_unref(s->jobs.memory);
    s->jobs = next;
}

static void jobs_set_version(struct cluster_state *s, uint64_t version)
{
    s->jobs.version = version;
}

static void config_replace(struct cluster_state *s, const struct cluster_config *next)
{
    document_unref(s->config.memory);
    s->config = *next;
}

static void config_drop(struct cluster_state *s, const char *name)
{
    struct cluster_config next;
    config_without(&s->config, name, &next);
    config_replace(s, &next);
}

static void config_set_version(struct cluster_state *s, uint64_t version)
{
    s->config.version = version;
}

/* Its items are an object's members, so that "put" is taken whole; see part_patch(). */
static int config_put(struct cluster_state *s, json_t *values, const char *path, struct error *err)
{
    const char *name;
    json_t *value;
    json_object_foreach(values, name, value)
    {
        if (!json_is_string(value))
            return error_set(err, E_JSON, "field '%s.%.64s' must be a string", path, name);
        struct cluster_config next;
        config_with(&s->config, name, json_string_value(value), &next);
        config_replace(s, &next);
    }
    return 0;
}

static void access_replace(struct cluster_state *s, const struct access *next)
{
    document_unref(s->access.memory);
    s->access = *next;
}

/* Sorted by name. */
static int users_read(json_t *items, const char *path, struct arena *a, struct user *users,
                      struct error *err)
{
    size_t count = json_array_size(items);
    if (!json_is_array(items))
        return error_set(err, E_JSON, "field '%s' must be an array", path);
    for (size_t i = 0; i < count; i++) {
        char item_path[64];
        json_t *item;
        int r = json_item(items, path, i, &item, item_path, err);
        if (r == 0)
            r = user_from_json(item, item_path, a, &users[i], err);
        if (r != 0)
            return r;
    }
    const char *twice = document_sort(users, count, sizeof users[0], offsetof(struct user, name));
    return twice == NULL ? 0
                         : error_set(err, E_INVALID, "field '%s' has user '%s' twice", path, twice);
}

/* All at once: a command may change as many users as there are (command_reseal()). */
static int users_put(struct cluster_state *s, json_t *items, const char *path, struct error *err)
{
    struct arena *scratch = arena_new(512);
    struct user *users = arena_alloc(scratch, json_array_size(items) * sizeof users[0]);
    int r = users_read(items, path, scratch, users, err);
    if (r == 0) {
        struct access next;
        access_with_users(&s->access, users, json_array_size(items), &next);
        access_replace(s, &next);
    }
    arena_free(scratch);
    return r;
}

static void user_drop(struct cluster_state *s, const char *name)
{
    struct access next;
    access_without_user(&s->access, name, &next);
    access_replace(s, &next);
}

static int role_put(struct cluster_state *s, json_t *item, const char *path, struct error *err)
{
    struct arena *scratch = arena_new(512);
    struct role role;
    int r = role_from_json(item, path, scratch, &role, err);
    if (r == 0) {
        struct access next;
        access_with_role(&s->access, &role, &next);
        access_replace(s, &next);
    }
    arena_free(scratch);
    return r;
}

static void role_drop(struct cluster_state *s, const char *name)
{
    struct access next;
    access_without_role(&s->access, name, &next);
    access_replace(s, &next);
}

static void access_set_version(struct cluster_state *s, uint64_t version)
{
    s->access.version = version;
}

static const struct part_ops parts[] = {
    {"smap", smap_put, smap_drop, smap_set_version, smap_rest, false},
    {"bmd", bmd_put, bmd_drop, bmd_set_version, NULL, false},
    {"config", config_put, config_drop, config_set_version, NULL, true},
    {"jobs", jobs_put, jobs_drop, jobs_set_version, NULL, false},
    {"users", users_put, user_drop, access_set_version, NULL, true},
    {"roles", role_put, role_drop, access_set_version, NULL, false},
};

static int part_put(struct cluster_state *s, const struct part_ops *ops, json_t *put,
                    struct error *err)
{
    char path[64];
    if (json_is_object(put) || ops->whole) {
        snprintf(path, sizeof path, "%s.put", ops->field);
        return ops->put(s, put, path, err);
    }
    for (size_t i = 0; i < json_array_size(put); i++) {
        char array[32];
        json_t *item;
        snprintf(array, sizeof array, "%s.put", ops->field);
        int r = json_item(put, array, i, &item, path, err);
        if (r == 0)
            r = ops->put(s, item, path, err);
        if (r != 0)
            return r;
    }
    return 0;
}

static int part_patch(struct cluster_state *s, const struct part_ops *ops, json_t *patch,
                      struct error *err)
{
    json_t *drop = NULL;
    json_t *put = json_object_get(patch, "put");
    uint64_t version;
    int r;
    if ((r = json_need_u64(patch, ops->field, "version", &version, err)) != 0 ||
        (r = json_get_array(patch, ops->field, "drop", &drop, err)) != 0 ||
        (r = json_present(put, ops->field, "put", err)) != 0)
        return r;
    for (size_t i = 0; i < json_array_size(drop); i++) {
        const char *name = json_string_value(json_array_get(drop, i));
        if (name == NULL)
            return error_set(err, E_JSON, "field '%s.drop[%zu]' must be a string", ops->field, i);
        ops->drop(s, name);
    }
    if ((r = part_put(s, ops, put, err)) != 0 ||
        (ops->rest != NULL && (r = ops->rest(s, patch, err)) != 0))
        return r;
    ops->set_version(s, version);
    return 0;
}

static int head_patch(struct cluster_state *s, json_t *delta, struct error *err)
{
    const char *primary;
    int r;
    if (!json_is_object(delta))
        return error_set(err, E_JSON, "a delta must be an object");
    if ((r = json_need_u64(delta, "", "term", &s->term, err)) != 0 ||
        (r = json_need_u64(delta, "", "version", &s->version, err)) != 0 ||
        (r = json_get_u64(delta, "", "term_version", &s->term_version, err)) != 0 ||
        (r = json_need_u64(delta, "", "next_bucket_id", &s->next_bucket_id, err)) != 0 ||
        (r = json_need_str(delta, "", "primary", &primary, err)) != 0)
        return r;
    free(s->primary);
    s->primary = xstrdup(primary);
    return 0;
}

int state_patch(const struct cluster_state *from, json_t *delta, struct cluster_state **out,
                struct error *err)
{
    _cleanup_state_ const struct cluster_state *made = state_next(from);
    struct cluster_state *s = (struct cluster_state *)made;
    int r = head_patch(s, delta, err);
    if (r != 0)
        return r;
    if (state_compare(s, from) <= 0)
        return error_set(err, E_STALE_MAP, "a delta to version %llu does not lead on from %llu",
                         (unsigned long long)s->version, (unsigned long long)from->version);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        json_t *patch = NULL;
        if ((r = json_get_object(delta, "", parts[i].field, &patch, err)) != 0 ||
            (patch != NULL && (r = part_patch(s, &parts[i], patch, err)) != 0))
            return r;
    }
    if ((r = state_check(s, err)) != 0)
        return r;
    made = NULL;
    *out = s;
    return 0;
}
