#include "proxy/jobs/sort_job.h"

#include "cluster/props/backend.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/rng.h"
#include "proxy/jobs/job_kind.h"
#include "proxy/jobs/job_make.h"
#include "sort/task/plan.h"
#include "sort/spec/spec.h"

static int find_bucket(const struct cluster_state *s, const char *name, const char *field,
                       const struct bucket **out, struct error *err)
{
    *out = bmd_bucket(&s->bmd, name);
    if (*out == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND,
                         "field '%s': bucket '%s' does not exist; create it first", field, name);
    return bucket_refuse_majority(*out, "sort", err);
}

static int plan_add_key_map(const struct cluster_state *s, const struct sort_spec *spec,
                            struct sort_plan *p, struct error *err)
{
    const struct bucket *b;
    int code = find_bucket(s, spec->ekm_bucket, "ekm_file", &b, err);
    if (code == 0)
        code = bucket_refuse_cold(b, "key map of a sort", "store it in a bucket without one", err);
    if (code == 0)
        p->ekm_bucket_id = b->id;
    return code;
}

/* What is not here yet is brought by its name. */
static int check_input(const struct bucket *b, const struct sort_spec *spec, struct error *err)
{
    if (spec->input_kind != SORT_INPUT_PREFIX || b->props.backend == NULL ||
        backend_is_listed(b->props.backend))
        return 0;
    return error_set(err, E_UNSUPPORTED,
                     "the backend of bucket '%s' cannot be listed: give the input by a list or a "
                     "template with an end",
                     b->name);
}

static void plan_set_buckets(struct sort_plan *p, const struct bucket *in, const struct bucket *out)
{
    p->input_bucket_id = in->id;
    p->output_bucket_id = out->id;
    p->output_props = bucket_props_to_json(&out->props);
}

static int plan_add_buckets(const struct cluster_state *s, const struct sort_spec *spec,
                            struct sort_plan *p, struct error *err)
{
    const struct bucket *in, *out;
    int code = find_bucket(s, spec->input_bucket, "input_bck", &in, err);
    if (code == 0)
        code = find_bucket(s, spec->output_bucket, "output_bck", &out, err);
    if (code != 0)
        return code;
    if ((code = check_input(in, spec, err)) != 0 ||
        (code = bucket_refuse_made(out, "sort", err)) != 0)
        return code;
    if (spec->ekm_bucket != NULL && (code = plan_add_key_map(s, spec, p, err)) != 0)
        return code;
    plan_set_buckets(p, in, out);
    return 0;
}

/* Every target that may hold input takes part. */
static int plan_add_targets(const struct cluster_state *s, struct sort_plan *p, struct error *err)
{
    p->ids = xcalloc(s->smap.count, sizeof *p->ids);
    p->data_urls = xcalloc(s->smap.count, sizeof *p->data_urls);
    p->nodes = xcalloc(s->smap.count, sizeof *p->nodes);
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[i];
        if (n->role != NODE_TARGET || n->state == NODE_MAINTENANCE ||
            n->state == NODE_DECOMMISSIONING)
            continue;
        p->ids[p->count] = xstrdup(n->id);
        p->data_urls[p->count] = xstrdup(n->data_url);
        p->nodes[p->count++] = (struct hrw_node){.seed = n->seed, .weight = n->weight};
    }
    if (p->count == 0)
        return error_set(err, E_NO_TARGETS, "the cluster has no active target");
    return 0;
}

int sort_job_plan(const struct cluster_state *s, uint64_t input_bucket_id,
                  uint64_t output_bucket_id, json_t **out, struct error *err)
{
    _cleanup_(sort_plan_freep)
    struct sort_plan *p = xcalloc(1, sizeof *p);
    plan_set_buckets(p, bmd_bucket_by_id(&s->bmd, input_bucket_id),
                     bmd_bucket_by_id(&s->bmd, output_bucket_id));
    random_bytes(&p->salt, sizeof p->salt);
    int code = plan_add_targets(s, p, err);
    if (code == 0)
        *out = sort_plan_json(p);
    return code;
}

static struct job *job_of_plan(const struct sort_spec *spec, const struct sort_plan *p,
                               int64_t wall_ms)
{
    char id[sizeof "srt-" + 10];
    random_id("srt-", id);
    struct job *job = job_new(id, "sort");
    job->state = JOB_QUEUED;
    job->description = xstrdup(spec->description != NULL ? spec->description : "");
    job->spec = sort_spec_json(spec);
    job->plan = sort_plan_json(p);
    job->created_ms = wall_ms;
    job->participant_count = p->count;
    job->participants = xcalloc(p->count, sizeof *job->participants);
    for (size_t i = 0; i < p->count; i++)
        job->participants[i] = xstrdup(p->ids[i]);
    return job;
}

/* One that does not answer would hide its shards, unless the job may go on without it: then it
 * begins, and waits as it would for one that is lost later. */
static int check_reachable(const struct cluster_state *s, const struct job *job, struct error *err)
{
    const char *first = NULL;
    size_t away = 0;
    for (size_t i = 0; i < job->participant_count; i++) {
        if (smap_node(&s->smap, job->participants[i])->state != NODE_UNREACHABLE)
            continue;
        first = first == NULL ? job->participants[i] : first;
        away++;
    }
    if (away <= sort_job_spares(job, s))
        return 0;
    return error_set(
        err, E_NODE_UNREACHABLE,
        "target '%s' does not answer, and shards of its cannot be read; bring it back, "
        "then start the sort again",
        first);
}

int sort_job_make(const struct cluster_state *s, json_t *request, int64_t wall_ms, struct job **out,
                  struct error *err)
{
    _cleanup_(sort_spec_freep)
    struct sort_spec *spec = NULL;
    int code = sort_spec_parse(request, &spec, err);
    if (code != 0)
        return code;
    _cleanup_(sort_plan_freep)
    struct sort_plan *p = xcalloc(1, sizeof *p);
    code = plan_add_buckets(s, spec, p, err);
    if (code == 0)
        code = plan_add_targets(s, p, err);
    if (code != 0)
        return code;
    random_bytes(&p->salt, sizeof p->salt);
    if (spec->algorithm == SORT_SHUFFLE && !spec->seed_given) {
        random_bytes(&spec->seed, sizeof spec->seed);
        spec->seed >>= 1; /* a JSON integer is signed */
        spec->seed_given = true;
    }
    struct job *job = job_of_plan(spec, p, wall_ms);
    code = job_check_size(s, job, err);
    if (code == 0)
        code = check_reachable(s, job, err);
    if (code == 0)
        *out = job;
    else
        job_unref(job);
    return code;
}

/* --- does it still fit? ----------------------------------------------------------------------- */

static int check_weights(const struct sort_plan *p, const struct cluster_state *s,
                         struct error *err)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct node *n = smap_node(&s->smap, p->ids[i]);
        if (n != NULL && n->weight != p->nodes[i].weight)
            return error_set(err, E_STALE_MAP,
                             "the weight of target '%s' changed while the job ran; start it again",
                             n->id);
    }
    return 0;
}

static int check_bucket(const struct cluster_state *s, uint64_t id, const char *which,
                        struct error *err)
{
    if (bmd_bucket_by_id(&s->bmd, id) != NULL)
        return 0;
    return error_set(err, E_BUCKET_NOT_FOUND, "the %s bucket was destroyed while the job ran",
                     which);
}

/* Copies that an output is to have besides: a repair would not bring what is hidden. */
static int check_copies(const struct sort_plan *p, const struct cluster_state *s, struct error *err)
{
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, p->output_bucket_id);
    json_int_t planned = json_integer_value(json_object_get(p->output_props, "copies"));
    if (b == NULL || planned == 0 || b->props.copies == (uint64_t)planned)
        return 0;
    return error_set(err, E_STALE_MAP,
                     "the copies of bucket '%s' changed while the job ran; start it again",
                     b->name);
}

int sort_job_fits(const struct job *job, const struct cluster_state *s, struct error *err)
{
    _cleanup_(sort_plan_freep)
    struct sort_plan *p = NULL;
    int code = sort_plan_parse(job->plan, &p, err);
    if (code == 0)
        code = check_weights(p, s, err);
    if (code == 0)
        code = check_bucket(s, p->input_bucket_id, "input", err);
    if (code == 0)
        code = check_bucket(s, p->output_bucket_id, "output", err);
    return code != 0 ? code : check_copies(p, s, err);
}

/* --- what can it do without? ------------------------------------------------------------------ */

/* Copies that have been asked for and are not made yet do not count. */
static size_t copies_of(const struct cluster_state *s, uint64_t bucket_id)
{
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, bucket_id);
    if (b == NULL)
        return 1;
    return b->filled < b->props.copies ? (size_t)b->filled : (size_t)b->props.copies;
}

size_t sort_job_spares(const struct job *job, const struct cluster_state *s)
{
    _cleanup_(sort_plan_freep)
    struct sort_plan *p = NULL;
    if (sort_plan_parse(job->plan, &p, NULL) != 0)
        return 0;
    size_t in = copies_of(s, p->input_bucket_id);
    size_t out = copies_of(s, p->output_bucket_id);
    size_t least = in < out ? in : out;
    if (p->ekm_bucket_id != 0 && copies_of(s, p->ekm_bucket_id) < least)
        least = copies_of(s, p->ekm_bucket_id);
    if (job->participant_count < least) /* there may be fewer targets than copies */
        least = job->participant_count;
    return least > 0 ? least - 1 : 0;
}

/* --- what can nobody read? -------------------------------------------------------------------- */

/* The search for shards whose owners are all away. */
struct search {
    const struct cluster_state *state;
    const struct job *job;
    const struct sort_plan *plan;
    size_t copies;
    size_t *ranked; /* `copies` */
    json_t *found;
};

static bool is_away(const struct search *x, const char *id)
{
    const struct node *n = smap_node(&x->state->smap, id);
    return n == NULL || n->state == NODE_UNREACHABLE || job_leaves_out(x->job, id);
}

static void look_at(struct search *x, const char *name)
{
    const struct sort_plan *p = x->plan;
    uint64_t key = hrw_key(p->input_bucket_id, name, strlen(name));
    size_t n = hrw_rank(key, p->nodes, p->count, x->copies, x->ranked);
    for (size_t i = 0; i < n; i++) {
        if (!is_away(x, p->ids[x->ranked[i]]))
            return;
    }
    json_array_append_new(x->found, json_string(name));
}

static uint64_t names_of(const struct sort_spec *spec)
{
    uint64_t count = spec->input_kind == SORT_INPUT_LIST ? spec->input_name_count
                     : spec->input_kind == SORT_INPUT_TEMPLATE
                         ? template_count(spec->input_template)
                         : 0;
    return count < SORT_JOB_NAMES_LOOKED_AT ? count : SORT_JOB_NAMES_LOOKED_AT;
}

static void search_names(struct search *x, const struct sort_spec *spec)
{
    uint64_t count = names_of(spec);
    _cleanup_(buf_done)
    struct buf name = BUF_INIT;
    for (uint64_t i = 0; i < count && json_array_size(x->found) < SORT_JOB_NAMES_SHOWN; i++) {
        buf_clear(&name);
        if (spec->input_kind == SORT_INPUT_LIST)
            buf_puts(&name, spec->input_names[i]);
        else
            template_name(spec->input_template, i, &name);
        look_at(x, buf_str(&name));
    }
}

json_t *sort_job_unreachable(const struct job *job, const struct cluster_state *s)
{
    struct search x = {.state = s, .job = job, .found = json_array()};
    _cleanup_(sort_plan_freep)
    struct sort_plan *p = NULL;
    _cleanup_(sort_spec_freep)
    struct sort_spec *spec = NULL;
    if (sort_plan_parse(job->plan, &p, NULL) != 0 || sort_spec_parse(job->spec, &spec, NULL) != 0)
        return x.found;
    const struct bucket *in = bmd_bucket_by_id(&s->bmd, p->input_bucket_id);
    if (in == NULL || in->props.ec_data > 0) /* slices are elsewhere */
        return x.found;
    x.plan = p;
    x.copies = copies_of(s, p->input_bucket_id);
    _cleanup_free_ size_t *ranked = xcalloc(x.copies + 1, sizeof *ranked);
    x.ranked = ranked;
    search_names(&x, spec);
    return x.found;
}

static uint64_t count_at(const json_t *obj, const char *field)
{
    json_int_t n = json_integer_value(json_object_get(obj, field));
    return n > 0 ? (uint64_t)n : 0;
}

int sort_job_outcome(const struct job *job, const json_t *reports, struct error *err)
{
    uint64_t shards = 0, records = 0;
    _cleanup_(sort_spec_freep)
    struct sort_spec *spec = NULL;
    const char *id;
    json_t *report;
    json_object_foreach((json_t *)reports, id, report)
    {
        const json_t *status = json_object_get(report, "status");
        const json_t *extract = json_object_get(status, "extract");
        shards += count_at(json_object_get(extract, "shards"), "total");
        records += count_at(json_object_get(status, "plan"), "records");
    }
    int rc = records > 0 ? 0 : sort_spec_parse(job->spec, &spec, err);
    return rc != 0 || spec == NULL ? rc : sort_spec_check_found(spec, shards, records, err);
}

const struct job_kind sort_kind = {
    .name = "sort",
    .fits = sort_job_fits,
    .spares = sort_job_spares,
    .judge = sort_job_outcome,
};
