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

static uint64_t sum_of_build(const char *build)
{
    return build != NULL ? XXH3_64bits(build, strlen(build)) : 0;
}

/* --- the body -------------------------------------------------------------------------------- */

static json_t *difference_of(const struct cluster_state *from, const struct cluster_state *to)
{
    _cleanup_free_ char *sum = sum_of(to);
    return json_pack("{s:i, s:{s:s, s:I, s:I}, s:o, s:s}", "format", state_format(to), "from",
                     "cluster", from->cluster_id, "term", (json_int_t)from->term, "version",
                     (json_int_t)from->version, "delta", state_delta(from, to), "sum", sum);
}

char *push_body_text(const struct cluster_state *from, const struct cluster_state *to)
{
    _cleanup_json_ json_t *doc = from != NULL ? difference_of(from, to) : state_to_json(to);
    _cleanup_free_ char *build = own_build();
    json_object_set_new(doc, "build", json_string(build));
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

/* Is the state that the difference leads to the primary's? */
static int check_sum(const struct cluster_state *s, const char *wanted, struct error *err)
{
    _cleanup_free_ char *sum = sum_of(s);
    return strcmp(sum, wanted) == 0
               ? 0
               : error_set(err, E_INVALID,
                           "the difference leads to another state %llu.%llu than the primary has",
                           (unsigned long long)s->term, (unsigned long long)s->version);
}

static int check_builds(const struct cluster_state *now, const char *build, struct error *err)
{
    return now->given_by == sum_of_build(build)
               ? 0
               : error_set(
                     err, E_INVALID,
                     "the primary is of build '%.64s', and this node's state %llu.%llu is not "
                     "from that build",
                     build, (unsigned long long)now->term, (unsigned long long)now->version);
}

static int check_difference(const struct cluster_state *now, const struct cluster_state *s,
                            json_t *doc, const char *build, struct error *err)
{
    const char *sum = NULL;
    int r = json_get_str(doc, "", "sum", &sum, err);
    if (r != 0 || build == NULL)
        return r;
    _cleanup_free_ char *own = own_build();
    if (strcmp(build, own) != 0)
        return check_builds(now, build, err);
    return sum != NULL ? check_sum(s, sum, err) : 0;
}

static int read_difference(const struct cluster_state *now, json_t *doc, json_t *from,
                           const char *build, struct cluster_state **out, struct error *err)
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
    if ((r = check_difference(now, s, doc, build, err)) != 0)
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
    const char *build = NULL;
    *out = NULL;
    int r = json_parse(text, len, &doc, err);
    if (r != 0)
        return r;
    if (!json_is_object(doc))
        return error_set(err, E_JSON, "a push must be an object");
    if ((r = json_get_object(doc, "", "from", &from, err)) != 0 ||
        (r = json_get_str(doc, "", "build", &build, err)) != 0)
        return r;
    r = from == NULL ? state_from_json(doc, out, err)
                     : read_difference(now, doc, from, build, out, err);
    if (*out != NULL)
        (*out)->given_by = sum_of_build(build);
    return r;
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
