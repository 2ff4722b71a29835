#include "proxy/jobs/job_turn.h"

#include <string.h>

#include "cluster/documents/layout.h"
#include "common/template.h"

/* Only jobs that hide what they make hold its names from others. */
static bool takes_turns(const struct job *job)
{
    return !json_is_true(json_object_get(job->spec, "dry_run")) &&
           (json_object_get(job->spec, "output_format") != NULL ||
            json_object_get(job->spec, "ekm_file") != NULL);
}

static json_int_t output_bucket(const struct job *job)
{
    return json_integer_value(json_object_get(job->plan, "output_bucket_id"));
}

static struct name_template *output_template(const struct job *job)
{
    const char *text = json_string_value(json_object_get(job->spec, "output_format"));
    struct name_template *t = NULL;
    return text != NULL && template_parse(text, &t, NULL) == 0 ? t : NULL;
}

/* No shard has the name of an index. */
static bool same_index(const struct job *a, const struct job *b)
{
    const char *ia = json_string_value(json_object_get(a->spec, "wids_index"));
    const char *ib = json_string_value(json_object_get(b->spec, "wids_index"));
    return ia != NULL && ib != NULL && strcmp(ia, ib) == 0;
}

/* Two templates can only make one name when the literal beginning of one begins the other's. */
static bool may_collide(const struct job *a, const struct job *b)
{
    _cleanup_(template_freep)
    struct name_template *ta = output_template(a);
    _cleanup_(template_freep)
    struct name_template *tb = output_template(b);
    if (ta == NULL || tb == NULL || same_index(a, b))
        return true;
    const char *pa = template_prefix(ta);
    const char *pb = template_prefix(tb);
    size_t la = strlen(pa), lb = strlen(pb);
    return strncmp(pa, pb, la < lb ? la : lb) == 0;
}

bool job_must_wait_for_moves(const struct job *job, const struct cluster_state *s)
{
    return !layout_is_settled(&s->smap) && json_object_get(job->plan, "input_bucket_id") != NULL;
}

int job_check_targets(const struct job *job, const struct cluster_state *s, size_t targets,
                      struct error *err)
{
    size_t active = smap_count(&s->smap, NODE_TARGET, NODE_ACTIVE);
    size_t silent = smap_count(&s->smap, NODE_TARGET, NODE_UNREACHABLE);
    if (active + silent == targets && !job_must_wait_for_moves(job, s))
        return 0;
    return error_set(err, E_STALE_MAP,
                     "the cluster's targets changed while the job ran; start it again");
}

bool job_must_wait(const struct job *job, const struct cluster_state *s)
{
    if (job_must_wait_for_moves(job, s))
        return true;
    for (size_t i = 0; i < s->jobs.count && takes_turns(job); i++) {
        const struct job *other = s->jobs.jobs[i];
        if (strcmp(other->id, job->id) == 0)
            return false;
        if (!job_ended(other->state) && takes_turns(other) &&
            output_bucket(other) == output_bucket(job) && may_collide(other, job))
            return true;
    }
    return false;
}
