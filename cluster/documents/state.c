#include "cluster/documents/state.h"

#include <stdatomic.h>
#include <string.h>

#include "cluster/base/document.h"
#include "cluster/base/json_items.h"
#include "cluster/documents/smap_change.h"
#include "common/jsonx.h"
#include "common/mem.h"

/* cluster/documents/state.h says where 2 and 3 are. */
enum { FORMAT = 1, FORMAT_COPIES = 2, FORMAT_ACCESS = 3 };

/* The public struct stays plain; the count stands beside it. */
struct state_box {
    atomic_uint refs;
    struct cluster_state state;
};

static struct state_box *state_box(const struct cluster_state *s)
{
    return (struct state_box *)((char *)s - offsetof(struct state_box, state));
}

static struct cluster_state *state_alloc(void)
{
    struct state_box *box = xcalloc(1, sizeof *box);
    atomic_init(&box->refs, 1);
    return &box->state;
}

struct cluster_state *state_new(const char *cluster_id)
{
    struct cluster_state *s = state_alloc();
    s->cluster_id = xstrdup(cluster_id);
    s->primary = xstrdup("");
    s->next_bucket_id = 1;
    return s;
}

struct cluster_state *state_ref(const struct cluster_state *s)
{
    atomic_fetch_add_explicit(&state_box(s)->refs, 1, memory_order_relaxed);
    return &state_box(s)->state;
}

void state_unref(const struct cluster_state *s)
{
    if (s == NULL)
        return;
    struct state_box *box = state_box(s);
    if (atomic_fetch_sub_explicit(&box->refs, 1, memory_order_acq_rel) != 1)
        return;
    free(box->state.cluster_id);
    free(box->state.primary);
    document_unref(box->state.smap.memory);
    document_unref(box->state.bmd.memory);
    document_unref(box->state.config.memory);
    document_unref(box->state.jobs.memory);
    document_unref(box->state.access.memory);
    free(box);
}

struct cluster_state *state_next(const struct cluster_state *s)
{
    struct cluster_state *next = state_alloc();
    *next = *s;
    next->version = s->version + 1;
    next->given_by = 0;
    next->cluster_id = xstrdup(s->cluster_id);
    next->primary = xstrdup(s->primary);
    document_ref(next->smap.memory);
    document_ref(next->bmd.memory);
    document_ref(next->config.memory);
    document_ref(next->jobs.memory);
    document_ref(next->access.memory);
    return next;
}

int state_compare(const struct cluster_state *a, const struct cluster_state *b)
{
    if (a->term != b->term)
        return a->term < b->term ? -1 : 1;
    if (a->version != b->version)
        return a->version < b->version ? -1 : 1;
    return 0;
}

/* 44 bits of milliseconds last for 557 years. */
enum { EPOCH_SHIFT = 44 };

static uint64_t epoch_of(uint64_t term)
{
    return term >> EPOCH_SHIFT;
}

uint64_t state_next_term(const struct cluster_state *s, int64_t wall_ms, bool next_epoch)
{
    uint64_t epoch = epoch_of(s->term) + next_epoch;
    uint64_t ms = wall_ms > 0 ? (uint64_t)wall_ms & (((uint64_t)1 << EPOCH_SHIFT) - 1) : 0;
    uint64_t term = epoch << EPOCH_SHIFT | ms;
    return term > s->term ? term : s->term + 1;
}

int state_check_history(const struct cluster_state *s, uint64_t term, uint64_t version,
                        struct error *err)
{
    /* A document that does not say when its term began proves nothing. */
    bool before = s->term_version == 0 || version < s->term_version;
    bool seen = term == s->term ? version <= s->version : term < s->term && before;
    if (seen || epoch_of(term) < epoch_of(s->term))
        return 0;
    return error_set(err, E_STALE_MAP,
                     "state %llu.%llu does not lead to %llu.%llu of a term that began with version "
                     "%llu: the primary's directory was put back to an earlier time; start it with "
                     "an empty one and --import the newest document that a node has (GET "
                     "/v1/cluster/state at its control address)",
                     (unsigned long long)term, (unsigned long long)version,
                     (unsigned long long)s->term, (unsigned long long)s->version,
                     (unsigned long long)s->term_version);
}

int state_accept(const struct cluster_state *now, const struct cluster_state *s, bool *newer,
                 struct error *err)
{
    *newer = false;
    if (now->cluster_id[0] != '\0' && strcmp(now->cluster_id, s->cluster_id) != 0)
        return error_set(err, E_WRONG_CLUSTER, "this node belongs to cluster '%s', not to '%s'",
                         now->cluster_id, s->cluster_id);
    if (state_compare(s, now) <= 0)
        return 0;
    int r = state_check_history(s, now->term, now->version, err);
    *newer = r == 0;
    return r;
}

int state_format(const struct cluster_state *s)
{
    if (s->access.version > 0)
        return FORMAT_ACCESS;
    return bmd_has_copies(&s->bmd) ? FORMAT_COPIES : FORMAT;
}

static json_t *state_view(const struct cluster_state *s, enum access_view view)
{
    json_t *doc = json_pack(
        "{s:i, s:s, s:I, s:I, s:I, s:I, s:s, s:o, s:o, s:o, s:o}", "format", state_format(s),
        "cluster", s->cluster_id, "term", (json_int_t)s->term, "version", (json_int_t)s->version,
        "term_version", (json_int_t)s->term_version, "next_bucket_id",
        (json_int_t)s->next_bucket_id, "primary", s->primary, "smap", smap_to_json(&s->smap), "bmd",
        bmd_to_json(&s->bmd), "config", config_to_json(&s->config), "jobs", jobs_to_json(&s->jobs));
    if (s->access.version > 0)
        json_object_set_new(doc, "access", access_to_json(&s->access, view));
    return doc;
}

json_t *state_to_json(const struct cluster_state *s)
{
    return state_view(s, ACCESS_WHOLE);
}

json_t *state_part_to_json(const struct cluster_state *s, const char *part)
{
    if (strcmp(part, "state") == 0)
        return state_view(s, ACCESS_PUBLIC);
    if (strcmp(part, "smap") == 0)
        return smap_to_json(&s->smap);
    if (strcmp(part, "bmd") == 0)
        return bmd_to_json(&s->bmd);
    if (strcmp(part, "config") == 0)
        return config_to_json(&s->config);
    if (strcmp(part, "jobs") == 0)
        return jobs_to_json(&s->jobs);
    if (strcmp(part, "access") == 0)
        return access_to_json(&s->access, ACCESS_PUBLIC);
    return NULL;
}

int state_format_check(json_t *doc, struct error *err)
{
    uint64_t format;
    int r = json_need_u64(doc, "", "format", &format, err);
    if (r == 0 && (format < FORMAT || format > FORMAT_ACCESS))
        r = error_set(err, E_UNSUPPORTED,
                      "field 'format' is %llu, and this release reads formats %d to %d",
                      (unsigned long long)format, FORMAT, FORMAT_ACCESS);
    return r;
}

static int state_head_from_json(json_t *doc, struct cluster_state *s, struct error *err)
{
    const char *cluster;
    const char *primary = "";
    int r;
    if (!json_is_object(doc))
        return error_set(err, E_JSON, "the state document must be an object");
    if ((r = state_format_check(doc, err)) != 0 ||
        (r = json_need_str(doc, "", "cluster", &cluster, err)) != 0 ||
        (r = json_need_u64(doc, "", "term", &s->term, err)) != 0 ||
        (r = json_need_u64(doc, "", "version", &s->version, err)) != 0 ||
        (r = json_get_u64(doc, "", "term_version", &s->term_version, err)) != 0 ||
        (r = json_need_u64(doc, "", "next_bucket_id", &s->next_bucket_id, err)) != 0 ||
        (r = json_get_str(doc, "", "primary", &primary, err)) != 0)
        return r;
    if (node_id_check(cluster, NULL) != 0)
        return error_set(err, E_INVALID, "field 'cluster' is not a cluster id");
    s->cluster_id = xstrdup(cluster);
    s->primary = xstrdup(primary);
    return 0;
}

static int state_parts_from_json(json_t *doc, struct cluster_state *s, struct error *err)
{
    const char *const fields[] = {"smap", "bmd", "config", "jobs"};
    json_t *parts[4] = {NULL, NULL, NULL, NULL};
    int r;
    for (size_t i = 0; i < 4; i++) {
        if ((r = json_get_object(doc, "", fields[i], &parts[i], err)) != 0 ||
            (r = json_present(parts[i], "", fields[i], err)) != 0)
            return r;
    }
    if ((r = smap_from_json(parts[0], &s->smap, err)) != 0 ||
        (r = bmd_from_json(parts[1], &s->bmd, err)) != 0 ||
        (r = config_from_json(parts[2], &s->config, err)) != 0)
        return r;
    return jobs_from_json(parts[3], &s->jobs, err);
}

static int access_part_from_json(json_t *doc, struct cluster_state *s, struct error *err)
{
    json_t *part = NULL;
    int r = json_get_object(doc, "", "access", &part, err);
    if (r != 0 || part == NULL)
        return r;
    return access_from_json(part, &s->access, err);
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Two buckets with one id would share their objects: no document may say so. */
int state_check(const struct cluster_state *s, struct error *err)
{
    _cleanup_free_ uint64_t *ids = xcalloc(s->bmd.count, sizeof ids[0]);
    for (size_t i = 0; i < s->bmd.count; i++)
        ids[i] = s->bmd.buckets[i].id;
    qsort(ids, s->bmd.count, sizeof ids[0], compare_u64);
    for (size_t i = 0; i < s->bmd.count; i++) {
        if (ids[i] == 0 || ids[i] >= s->next_bucket_id || (i > 0 && ids[i] == ids[i - 1]))
            return error_set(err, E_INVALID,
                             "field 'bmd.buckets': id %llu is 0, used twice or not below "
                             "next_bucket_id",
                             (unsigned long long)ids[i]);
    }
    return access_check(&s->access, err);
}

int state_from_json(json_t *doc, struct cluster_state **out, struct error *err)
{
    _cleanup_state_ const struct cluster_state *made = state_alloc();
    struct cluster_state *s = (struct cluster_state *)made;
    int r;
    if ((r = state_head_from_json(doc, s, err)) != 0 ||
        (r = state_parts_from_json(doc, s, err)) != 0 ||
        (r = access_part_from_json(doc, s, err)) != 0 || (r = state_check(s, err)) != 0)
        return r;
    made = NULL;
    *out = s;
    return 0;
}
