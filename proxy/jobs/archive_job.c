/* The primary's part of the job `archive` (xaction/objects_spec.h): a sort whose inputs are objects
 * that are no archives (docs/design/sort-engine.md). */
#include "common/mem.h"
#include "common/rng.h"
#include "proxy/jobs/objects_job.h"
#include "proxy/jobs/objects_view.h"
#include "proxy/jobs/sort_job.h"
#include "sort/shard/member_writer.h"
#include "xaction/objects_spec.h"

static int check(const struct objects_spec *spec, struct error *err)
{
    const struct shard_format_ops *format;
    const char *name = spec->shards != NULL ? template_text(spec->shards) : spec->archive;
    return member_writer_format(spec->format, name, &format, err);
}

/* All targets shuffle by the same seed. */
static void draw_seed(json_t *spec)
{
    const char *order = json_string_value(json_object_get(spec, "order"));
    if (order == NULL || strcmp(order, "shuffle") != 0 || json_object_get(spec, "seed") != NULL)
        return;
    uint64_t seed;
    random_bytes(&seed, sizeof seed);
    json_object_set_new(spec, "seed", json_integer((json_int_t)(seed >> 1))); /* it has a sign */
}

static int plan(const struct cluster_state *s, const struct objects_plan *plan, struct job *job,
                struct error *err)
{
    draw_seed(job->spec);
    return sort_job_plan(s, plan->input_bucket_id, plan->output_bucket_id, &job->plan, err);
}

const struct job_kind archive_kind = {
    .name = "archive",
    .objects =
        &(const struct objects_rule){
            .from = OBJECTS_ANY, .listed = true, .all = true, .check_spec = check, .plan = plan},
    .fits = sort_job_fits,
    .judge = objects_view_outcome,
};
