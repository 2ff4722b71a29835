#include "cluster/documents/push_body.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#include "cluster/base/document.h"
#include "cluster/base/json_items.h"
#include "cluster/documents/delta.h"
#include "cluster/documents/smap_change.h"
#include "common/build.h"
#include "common/jsonx.h"
#include "common/mem.h"

/* --- the sum --------------------------------------------------------------------------------- */

static uint64_t sum_of_json(json_t *doc)
{
    _cleanup_free_ char *text = json_text(doc);
    json_decref(doc);
    return XXH3_64bits(text, strlen(text));
}

static uint64_t sum_smap(const void *doc)
{
    return sum_of_json(smap_to_json(doc));
}

static uint64_t sum_bmd(const void *doc)
{
    return sum_of_json(bmd_to_json(doc));
}

static uint64_t sum_config(const void *doc)
{
    return sum_of_json(config_to_json(doc));
}

static uint64_t sum_jobs(const void *doc)
{
    return sum_of_json(jobs_to_json(doc));
}

static uint64_t sum_access(const void *doc)
{
    return sum_of_json(access_to_json(doc, ACCESS_WHOLE));
}

/* Of the head and of the documents' sums: a change computes that of its own document alone. */
static char *sum_of(const struct cluster_state *s)
{
    _cleanup_free_ char *text =
        xprintf("%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s %" PRIx64 " %" PRIx64
                " %" PRIx64 " %" PRIx64 " %" PRIx64,
                s->cluster_id, s->term, s->version, s->term_version, s->next_bucket_id, s->primary,
                document_sum(s->smap.memory, sum_smap, &s->smap),
                document_sum(s->bmd.memory, sum_bmd, &s->bmd),
                document_sum(s->config.memory, sum_config, &s->config),
                document_sum(s->jobs.memory, sum_jobs, &s->jobs),
                document_sum(s->access.memory, sum_access, &s->access));
    return xprintf("%016" PRIx64, XXH3_64bits(text, strlen(text)));
}

static char *own_build(void)
{
    return xprintf("%s %s", build_release(), build_commit());
}

/* --- the body -------------------------------------------------------------------------------- */

static json_t *body_of(const struct cluster_state *from, const struct cluster_state *to)
{
    if (from == NULL)
        return state_to_json(to);
    _cleanup_free_ char *sum = sum_of(to);
    _cleanup_free_ char *build = own_build();
    return json_pack("{s:i, s:{s:s, s:I, s:I}, s:o, s:s, s:s}", "format", state_format(to), "from",
                     "cluster", from->cluster_id, "term", (json_int_t)from->term, "version",
                     (json_int_t)from->version, "delta", state_delta(from, to), "sum", sum, "build",
                     build);
}

char *push_body_text(const struct cluster_state *from, const struct cluster_state *to)
{
    _cleanup_json_ json_t *doc = body_of(from, to);
    return json_text(doc);
}

/* Is `now` the state that the difference begins with? */
static int begins_with(const struct cluster_state *now, json_t *from, bool *does, struct error *err)
{
    const char *cluster;
    uint64_t term;
    uint64_t version;
    int r;
    if ((r = json_need_str(from, "from", "cluster", &cluster, err)) != 0 ||
        (r = json_need_u64(from, "from", "term", &term, err)) != 0 ||
        (r = json_need_u64(from, "from", "version", &version, err)) != 0)
        return r;
    if (now->cluster_id[0] != '\0' && strcmp(now->cluster_id, cluster) != 0)
        return error_set(err, E_WRONG_CLUSTER, "this node belongs to cluster '%s', not to '%.64s'",
                         now->cluster_id, cluster);
    *does = now->cluster_id[0] != '\0' && now->term == term && now->version == version;
    return 0;
}

static int check_sum(json_t *doc, const struct cluster_state *s, struct error *err)
{
    const char *wanted = NULL;
    const char *build = NULL;
    int r;
    if ((r = json_get_str(doc, "", "sum", &wanted, err)) != 0 ||
        (r = json_get_str(doc, "", "build", &build, err)) != 0 || wanted == NULL || build == NULL)
        return r;
    _cleanup_free_ char *own = own_build();
    if (strcmp(build, own) != 0)
        return 0;
    _cleanup_free_ char *sum = sum_of(s);
    return strcmp(sum, wanted) == 0
               ? 0
               : error_set(err, E_INVALID,
                           "the difference leads to another state %llu.%llu than the primary has",
                           (unsigned long long)s->term, (unsigned long long)s->version);
}

static int read_difference(const struct cluster_state *now, json_t *doc, json_t *from,
                           struct cluster_state **out, struct error *err)
{
    json_t *delta = NULL;
    struct cluster_state *s;
    bool does = false;
    int r;
    if ((r = begins_with(now, from, &does, err)) != 0 ||
        (json_object_get(doc, "format") != NULL && (r = state_format_check(doc, err)) != 0) ||
        (r = json_get_object(doc, "", "delta", &delta, err)) != 0 ||
        (r = json_present(delta, "", "delta", err)) != 0 || !does ||
        (r = state_patch(now, delta, &s, err)) != 0)
        return r;
    if ((r = check_sum(doc, s, err)) != 0)
        state_unref(s);
    else
        *out = s;
    return r;
}

int push_body_read(const struct cluster_state *now, const char *text, size_t len,
                   struct cluster_state **out, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    json_t *from = NULL;
    *out = NULL;
    int r = json_parse(text, len, &doc, err);
    if (r != 0)
        return r;
    if (!json_is_object(doc))
        return error_set(err, E_JSON, "a push must be an object");
    if ((r = json_get_object(doc, "", "from", &from, err)) != 0)
        return r;
    return from == NULL ? state_from_json(doc, out, err)
                        : read_difference(now, doc, from, out, err);
}

json_t *push_reply_to_json(const struct push_reply *r)
{
    return json_pack("{s:I, s:I, s:b}", "term", (json_int_t)r->term, "version",
                     (json_int_t)r->version, "deltas", r->deltas);
}

int push_reply_from_json(json_t *doc, struct push_reply *reply, struct error *err)
{
    struct push_reply read = {0};
    int r;
    if ((r = json_need_u64(doc, "", "term", &read.term, err)) != 0 ||
        (r = json_need_u64(doc, "", "version", &read.version, err)) != 0 ||
        (r = json_get_bool(doc, "", "deltas", &read.deltas, err)) != 0)
        return r;
    *reply = read;
    return 0;
}
