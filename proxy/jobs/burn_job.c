/* The primary's part of the job `burn` (xaction/burn_spec.h). */
#include "common/mem.h"
#include "proxy/jobs/objects_job.h"
#include "xaction/burn_spec.h"
#include "xaction/objects_spec.h"

static int check(json_t *value, char **description, struct error *err)
{
    _cleanup_(burn_spec_freep)
    struct burn_spec *spec = NULL;
    int code = burn_spec_parse(value, &spec, err);
    if (code != 0)
        return code;
    *description =
        *spec->description != '\0' ? xstrdup(spec->description) : xprintf("image %s", spec->image);
    return 0;
}

/* The image's bucket belongs to the plan, too. */
static int plan(const struct cluster_state *s, const struct objects_plan *plan, struct job *job,
                struct error *err)
{
    _cleanup_(burn_spec_freep)
    struct burn_spec *spec = NULL;
    struct objects_plan with = *plan;
    int code = burn_spec_parse(job->spec, &spec, err);
    if (code != 0)
        return code;
    const struct bucket *to = spec->to != NULL ? bmd_bucket(&s->bmd, spec->to)
                                               : bmd_bucket_by_id(&s->bmd, plan->input_bucket_id);
    if (to == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "bucket '%s' does not exist",
                         spec->to != NULL ? spec->to : "");
    code = bucket_refuse_majority(to, "jobs over its objects", err);
    if (code == 0)
        code = bucket_refuse_made(to, "image", err);
    with.output_bucket_id = to->id;
    job->plan = objects_plan_json(&with);
    return code;
}

const struct job_kind burn_kind = {
    .name = "burn",
    .objects = &(const struct objects_rule){.from = OBJECTS_ANY, .check = check, .plan = plan},
    .fits = objects_job_fits,
};
