#include "cluster/documents/delta.h"

#include <string.h>

#include "cluster/base/document.h"
#include "cluster/base/json_items.h"
#include "cluster/documents/layout.h"
#include "cluster/documents/smap_change.h"
#include "common/jsonx.h"
#include "common/mem.h"

/* The change of one sub-document as it was read.  Its names and items live as long as `memory`. */
struct patch {
    const char *field;
    json_t *doc;
    json_t *put;
    const char **drop; /* sorted */
    size_t drop_count;
    struct arena *memory;
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int read_drop(struct patch *p, struct error *err)
{
    json_t *drop = NULL;
    int r = json_get_array(p->doc, p->field, "drop", &drop, err);
    if (r != 0)
        return r;
    p->drop_count = json_array_size(drop);
    p->drop = arena_alloc(p->memory, p->drop_count * sizeof p->drop[0]);
    for (size_t i = 0; i < p->drop_count; i++) {
        p->drop[i] = json_string_value(json_array_get(drop, i));
        if (p->drop[i] == NULL)
            return error_set(err, E_JSON, "field '%s.drop[%zu]' must be a string", p->field, i);
    }
    if (p->drop_count > 0)
        qsort(p->drop, p->drop_count, sizeof p->drop[0], compare_names);
    return 0;
}

/* All items of "put", read by `read` one by one into an array of memory that they share. */
static int read_items(const struct patch *p, size_t item_size,
                      int (*read)(json_t *item, const char *path, struct arena *a, void *out,
                                  struct error *err),
                      void **items, size_t *count, struct error *err)
{
    char put[32];
    snprintf(put, sizeof put, "%s.put", p->field);
    if (!json_is_array(p->put))
        return error_set(err, E_JSON, "field '%s' must be an array", put);
    *count = json_array_size(p->put);
    *items = arena_alloc(p->memory, *count * item_size);
    for (size_t i = 0; i < *count; i++) {
        char path[64];
        json_t *item;
        int r = json_item(p->put, put, i, &item, path, err);
        if (r == 0)
            r = read(item, path, p->memory, (char *)*items + i * item_size, err);
        if (r != 0)
            return r;
    }
    return 0;
}

static int twice(const struct patch *p, const char *name, struct error *err)
{
    return error_set(err, E_INVALID, "field '%s.put' has '%.64s' twice", p->field, name);
}

/* Is it the document that the delta was made for?  `lacks`: a name that it should have dropped. */
static int judge(const struct patch *p, const char *lacks, size_t count, struct error *err)
{
    uint64_t wanted = count; /* a delta of an earlier release does not tell */
    int r = json_get_u64(p->doc, p->field, "count", &wanted, err);
    if (r != 0)
        return r;
    if (lacks != NULL)
        return error_set(err, E_INVALID, "field '%s.drop' has '%.64s', which is not there",
                         p->field, lacks);
    return count == wanted
               ? 0
               : error_set(err, E_INVALID, "the delta of '%s' leads to %zu items, not to %llu",
                           p->field, count, (unsigned long long)wanted);
}

/* Items of documents that are sorted by name. */
static int read_change(const struct patch *p, size_t item_size, size_t name_offset,
                       int (*read)(json_t *item, const char *path, struct arena *a, void *out,
                                   struct error *err),
                       struct document_change *c, struct error *err)
{
    void *items = NULL;
    size_t count = 0;
    int r = read_items(p, item_size, read, &items, &count, err);
    if (r != 0)
        return r;
    const char *name = document_sort(items, count, item_size, name_offset);
    *c = (struct document_change){items, count, p->drop, p->drop_count};
    return name == NULL ? 0 : twice(p, name, err);
}

static int read_node(json_t *item, const char *path, struct arena *a, void *out, struct error *err)
{
    return node_from_json(item, path, a, out, err);
}

static int patch_smap(struct cluster_state *s, const struct patch *p, uint64_t version,
                      struct error *err)
{
    struct document_change c;
    int r = read_change(p, sizeof(struct node), offsetof(struct node, id), read_node, &c, err);
    if (r != 0)
        return r;
    struct smap next;
    const char *lacks = smap_changed(&s->smap, &c, &next);
    document_unref(s->smap.memory);
    s->smap = next;
    s->smap.version = version;
    r = judge(p, lacks, next.count, err);
    return r != 0 ? r : layout_patch(p->doc, &s->smap, err);
}

static int read_bucket(json_t *item, const char *path, struct arena *a, void *out,
                       struct error *err)
{
    return bucket_from_json(item, path, a, out, err);
}

static int patch_bmd(struct cluster_state *s, const struct patch *p, uint64_t version,
                     struct error *err)
{
    struct document_change c;
    int r =
        read_change(p, sizeof(struct bucket), offsetof(struct bucket, name), read_bucket, &c, err);
    if (r != 0)
        return r;
    struct bmd next;
    const char *lacks = bmd_changed(&s->bmd, &c, &next);
    document_unref(s->bmd.memory);
    s->bmd = next;
    s->bmd.version = version;
    return judge(p, lacks, next.count, err);
}

/* Its items are an object's members. */
static int read_values(const struct patch *p, struct config_value *values, struct error *err)
{
    const char *name;
    json_t *value;
    size_t count = 0;
    json_object_foreach(p->put, name, value)
    {
        if (!json_is_string(value))
            return error_set(err, E_JSON, "field 'config.put.%.64s' must be a string", name);
        values[count++] = (struct config_value){name, json_string_value(value)};
    }
    (void)document_sort(values, count, sizeof values[0],
                        offsetof(struct config_value, name)); /* an object has no name twice */
    return 0;
}

static int patch_config(struct cluster_state *s, const struct patch *p, uint64_t version,
                        struct error *err)
{
    if (!json_is_object(p->put))
        return error_set(err, E_JSON, "field 'config.put' must be an object");
    size_t count = json_object_size(p->put);
    struct config_value *values = arena_alloc(p->memory, count * sizeof values[0]);
    int r = read_values(p, values, err);
    if (r != 0)
        return r;
    const struct document_change c = {values, count, p->drop, p->drop_count};
    struct cluster_config next;
    const char *lacks = config_changed(&s->config, &c, &next);
    document_unref(s->config.memory);
    s->config = next;
    s->config.version = version;
    return judge(p, lacks, next.count, err);
}

static int read_user(json_t *item, const char *path, struct arena *a, void *out, struct error *err)
{
    return user_from_json(item, path, a, out, err);
}

static int read_role(json_t *item, const char *path, struct arena *a, void *out, struct error *err)
{
    return role_from_json(item, path, a, out, err);
}

/* Returns a name that is not there, or NULL. */
static const char *replace_access(struct cluster_state *s, const struct document_change *users,
                                  const struct document_change *roles, uint64_t version)
{
    struct access next;
    const char *lacks = access_changed(&s->access, users, roles, &next);
    document_unref(s->access.memory);
    s->access = next;
    s->access.version = version;
    return lacks;
}

static const struct document_change nothing;

static int patch_users(struct cluster_state *s, const struct patch *p, uint64_t version,
                       struct error *err)
{
    struct document_change c;
    int r = read_change(p, sizeof(struct user), offsetof(struct user, name), read_user, &c, err);
    if (r != 0)
        return r;
    const char *lacks = replace_access(s, &c, &nothing, version);
    return judge(p, lacks, s->access.user_count, err);
}

static int patch_roles(struct cluster_state *s, const struct patch *p, uint64_t version,
                       struct error *err)
{
    struct document_change c;
    int r = read_change(p, sizeof(struct role), offsetof(struct role, name), read_role, &c, err);
    if (r != 0)
        return r;
    const char *lacks = replace_access(s, &nothing, &c, version);
    return judge(p, lacks, s->access.role_count, err);
}

static int check_jobs(const struct patch *p, struct job *const *jobs, size_t count,
                      struct error *err)
{
    const char **ids = arena_alloc(p->memory, count * sizeof ids[0]);
    for (size_t i = 0; i < count; i++)
        ids[i] = jobs[i]->id;
    if (count > 0)
        qsort(ids, count, sizeof ids[0], compare_names);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(ids[i - 1], ids[i]) == 0)
            return twice(p, ids[i], err);
    }
    return 0;
}

static int read_jobs(const struct patch *p, struct job **jobs, size_t *count, struct error *err)
{
    if (!json_is_array(p->put))
        return error_set(err, E_JSON, "field 'jobs.put' must be an array");
    for (size_t i = 0; i < json_array_size(p->put); i++) {
        char path[64];
        json_t *item;
        int r = json_item(p->put, "jobs.put", i, &item, path, err);
        if (r != 0)
            return r;
        if ((r = job_from_json(item, &jobs[i], err)) != 0) {
            error_wrap(err, "%s", path);
            return r;
        }
        ++*count;
    }
    return check_jobs(p, jobs, *count, err);
}

static int patch_jobs(struct cluster_state *s, const struct patch *p, uint64_t version,
                      struct error *err)
{
    size_t count = 0;
    struct job **jobs = arena_alloc(p->memory, json_array_size(p->put) * sizeof jobs[0]);
    int r = read_jobs(p, jobs, &count, err);
    if (r == 0) {
        const struct jobs_change c = {(const struct job *const *)jobs, count, p->drop,
                                      p->drop_count};
        struct jobs next;
        bool whole = jobs_changed(&s->jobs, &c, &next);
        document_unref(s->jobs.memory);
        s->jobs = next;
        s->jobs.version = version;
        r = judge(p, whole ? NULL : "a job", next.count, err);
    }
    for (size_t i = 0; i < count; i++)
        job_unref(jobs[i]);
    return r;
}

static const struct {
    const char *field;
    int (*patch)(struct cluster_state *s, const struct patch *p, uint64_t version,
                 struct error *err);
} parts[] = {
    {"smap", patch_smap}, {"bmd", patch_bmd},     {"config", patch_config},
    {"jobs", patch_jobs}, {"users", patch_users}, {"roles", patch_roles},
};

static int patch_part(struct cluster_state *s, size_t n, json_t *doc, struct error *err)
{
    struct arena *memory = arena_new(4096);
    struct patch p = {
        .field = parts[n].field, .doc = doc, .put = json_object_get(doc, "put"), .memory = memory};
    uint64_t version;
    int r = json_need_u64(doc, p.field, "version", &version, err);
    if (r == 0)
        r = json_present(p.put, p.field, "put", err);
    if (r == 0)
        r = read_drop(&p, err);
    if (r == 0)
        r = parts[n].patch(s, &p, version, err);
    arena_free(memory);
    return r;
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
            (patch != NULL && (r = patch_part(s, i, patch, err)) != 0))
            return r;
    }
    if ((r = state_check(s, err)) != 0)
        return r;
    made = NULL;
    *out = s;
    return 0;
}
