#include "proxy/jobs/objects_job.h"

#include <assert.h>
#include <string.h>

#include "cluster/props/backend.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "proxy/jobs/job_make.h"
#include "xaction/objects_spec.h"

static int check_backend(const struct bucket *b, const struct job_kind *k, struct error *err)
{
    switch (k->objects->from) {
    case OBJECTS_ANY:
        return 0;
    case OBJECTS_OWN:
        return bucket_refuse_cold(b, "job of this kind", k->objects->instead, err);
    case OBJECTS_CACHED:
        break;
    }
    if (b->props.backend != NULL)
        return 0;
    return error_set(err, E_INVALID, "bucket '%s' has no backend: there is nothing to %s", b->name,
                     k->name);
}

static int find_bucket(const struct cluster_state *s, const struct job_kind *k, const char *name,
                       uint64_t *id, struct error *err)
{
    const struct bucket *b = bmd_bucket(&s->bmd, name);
    if (b == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "bucket '%s' does not exist", name);
    *id = b->id;
    int code = bucket_refuse_majority(b, "jobs over its objects", err);
    if (code == 0 && (k->objects->removes || k->objects->fills))
        code = bucket_refuse_ring(b, "job that changes its objects", err);
    if (code == 0 && k->objects->removes)
        code = bucket_refuse_removal(b, "job that deletes objects", err);
    return code != 0 ? code : check_backend(b, k, err);
}

static int plan_begin(const struct cluster_state *s, const struct job_kind *k, const char *bucket,
                      struct objects_plan *p, struct error *err)
{
    *p = (struct objects_plan){.term = s->term, .version = s->version};
    int r = bucket_name_check(bucket, err);
    return r == 0 ? find_bucket(s, k, bucket, &p->input_bucket_id, err) : r;
}

static int check_listed(const struct bucket *b, struct error *err)
{
    if (b->props.backend == NULL || backend_is_listed(b->props.backend))
        return 0;
    return error_set(err, E_UNSUPPORTED,
                     "the backend of bucket '%s' cannot be listed: give 'list' or 'template'",
                     b->name);
}

static int check_node(const struct cluster_state *s, const char *id, struct error *err)
{
    const struct node *n = smap_node(&s->smap, id);
    if (n != NULL && n->role == NODE_TARGET)
        return 0;
    return error_set(err, E_NODE_NOT_FOUND, "field 'value.node': no target is called '%.64s'", id);
}

static int plan_make(const struct cluster_state *s, const struct job_kind *k,
                     const struct objects_spec *spec, const char *bucket, struct objects_plan *p,
                     struct error *err)
{
    int r = plan_begin(s, k, bucket, p, err);
    if (r == 0 && k->objects->listed && spec->which == OBJECTS_PREFIX)
        r = check_listed(bmd_bucket(&s->bmd, bucket), err);
    if (r == 0 && spec->node != NULL)
        r = check_node(s, spec->node, err);
    const char *to = objects_spec_to(spec, bucket);
    if (r != 0 || to == NULL)
        return r;
    if (!spec->makes && strcmp(bucket, to) == 0 && *spec->prepend == '\0')
        return error_set(err, E_INVALID,
                         "a copy within bucket '%s' needs a 'prepend', for it would copy every "
                         "object onto itself",
                         bucket);
    bool archives = spec->archive != NULL || spec->shards != NULL;
    r = find_bucket(s, k, to, &p->output_bucket_id, err);
    return r == 0
               ? bucket_refuse_made(bmd_bucket(&s->bmd, to), archives ? "archive" : "copies", err)
               : r;
}

/* "": as its bucket. */
static char *description_of(const struct objects_spec *spec, const char *bucket)
{
    const char *to = objects_spec_to(spec, bucket);
    if (*spec->description == '\0' && spec->path != NULL)
        return xprintf("%s to %s", spec->path, bucket);
    if (*spec->description != '\0' || to == NULL)
        return xstrdup(spec->description);
    if (spec->archive != NULL)
        return xprintf("%s to %s/%s", bucket, to, spec->archive);
    if (spec->shards != NULL)
        return xprintf("%s to %s/%s", bucket, to, template_text(spec->shards));
    return xprintf("%s to %s", bucket, to);
}

/* Checks the request: its description, and its plan. */
static int check_request(const struct cluster_state *s, const struct job_kind *k,
                         const char *bucket, json_t *value, char **description,
                         struct objects_plan *plan, struct error *err)
{
    _cleanup_(objects_spec_freep)
    struct objects_spec *spec = NULL;
    int r;
    if (k->objects->check != NULL) {
        r = k->objects->check(value, description, err);
        return r == 0 ? plan_begin(s, k, bucket, plan, err) : r;
    }
    if ((r = objects_spec_parse(k->name, value, &spec, err)) != 0)
        return r;
    if (k->objects->check_spec != NULL && (r = k->objects->check_spec(spec, err)) != 0)
        return r;
    if ((r = plan_make(s, k, spec, bucket, plan, err)) == 0)
        *description = description_of(spec, bucket);
    return r;
}

/* The document of a plan and a request. */
static int finish(const struct cluster_state *s, const struct job_kind *k, struct job *job,
                  json_t *value, const struct objects_plan *plan, struct job **out,
                  struct error *err)
{
    int r = 0;
    job->spec = json_deep_copy(value);
    if (k->objects->plan != NULL)
        r = k->objects->plan(s, plan, job, err);
    else
        job->plan = objects_plan_json(plan);
    if (r == 0)
        r = job_check_size(s, job, err);
    if (r == 0)
        *out = job;
    else
        job_unref(job);
    return r;
}

int objects_job_make(const struct cluster_state *s, const char *kind, const char *bucket,
                     json_t *value, int64_t wall_ms, struct job **out, struct error *err)
{
    const struct job_kind *k = job_kind_find(kind);
    assert(k != NULL && k->objects != NULL);
    _cleanup_free_ char *description = NULL;
    struct objects_plan plan;
    struct job *job = NULL;
    int r;
    if ((r = check_request(s, k, bucket, value, &description, &plan, err)) != 0 ||
        (r = job_make(s, kind, wall_ms, &job, err)) != 0)
        return r;
    free(job->description);
    job->description = *description != '\0' ? steal(description) : xstrdup(bucket);
    return finish(s, k, job, value, &plan, out, err);
}

static int check_bucket(const struct cluster_state *s, uint64_t id, const char *which,
                        struct error *err)
{
    if (bmd_bucket_by_id(&s->bmd, id) != NULL)
        return 0;
    return error_set(err, E_BUCKET_NOT_FOUND, "the %s was destroyed while the job ran", which);
}

int objects_job_fits(const struct job *job, const struct cluster_state *s, struct error *err)
{
    struct objects_plan plan;
    int r = objects_plan_parse(job->plan, &plan, err);
    if (r == 0)
        r = check_bucket(s, plan.input_bucket_id, "bucket", err);
    if (r == 0 && plan.output_bucket_id != 0)
        r = check_bucket(s, plan.output_bucket_id, "destination", err);
    return r;
}
