#include "proxy/jobs/job_make.h"

#include <assert.h>

#include "common/jsonx.h"
#include "common/mem.h"
#include "common/rng.h"
#include "xaction/kinds.h"

enum {
    RANDOM_CHARS = 11,   /* that random_id() adds, with the end */
    GROWTH_BYTES = 8192, /* of which an error's message may take 2600 */
};

static int add_targets(const struct cluster_state *s, struct job *job, struct error *err)
{
    job->participants = xcalloc(s->smap.count, sizeof *job->participants);
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[i];
        if (n->role != NODE_TARGET || n->state == NODE_MAINTENANCE ||
            n->state == NODE_DECOMMISSIONING)
            continue;
        if (n->state == NODE_UNREACHABLE)
            return error_set(err, E_NODE_UNREACHABLE,
                             "target '%s' does not answer, and what it holds cannot be reached; "
                             "bring it back, then start the job again",
                             n->id);
        job->participants[job->participant_count++] = xstrdup(n->id);
    }
    if (job->participant_count == 0)
        return error_set(err, E_NO_TARGETS, "the cluster has no active target");
    return 0;
}

struct job *job_make_queued(const char *kind, int64_t wall_ms)
{
    const struct xaction_kind *k = xaction_kind_find(kind);
    assert(k != NULL);
    _cleanup_free_ char *id = xcalloc(1, strlen(k->label) + RANDOM_CHARS);
    random_id(k->label, id);
    struct job *job = job_new(id, kind);
    job->state = JOB_QUEUED;
    job->created_ms = wall_ms;
    return job;
}

int job_make(const struct cluster_state *s, const char *kind, int64_t wall_ms, struct job **out,
             struct error *err)
{
    struct job *job = job_make_queued(kind, wall_ms);
    job->description = xstrdup("");
    int code = add_targets(s, job, err);
    if (code == 0)
        *out = job;
    else
        job_unref(job);
    return code;
}

/* What may come to a document until its job ends: attempts, who is gone on without, an error. */
static size_t growth_of(const struct job *job)
{
    size_t bytes = GROWTH_BYTES;
    for (size_t i = 0; i < job->participant_count; i++)
        bytes += strlen(job->participants[i]) + 3; /* in quotes, with a comma */
    return bytes;
}

int job_check_size(const struct cluster_state *s, const struct job *job, struct error *err)
{
    size_t bytes = job_bytes(job);
    size_t max = JOB_DOCUMENT_MAX - growth_of(job);
    if (bytes > max)
        return error_set(
            err, E_TOO_LARGE,
            "the job's document of %zu bytes exceeds %zu; give the names by a template "
            "or a prefix, or do it in parts",
            bytes, max);
    for (size_t i = 0; i < s->jobs.count; i++) {
        const struct job *other = s->jobs.jobs[i];
        bytes += job_ended(other->state) ? 0 : job_bytes(other);
    }
    if (bytes > JOBS_BYTES_MAX)
        return error_set(err, E_OVERLOAD, "the unfinished jobs' documents would exceed %d bytes",
                         JOBS_BYTES_MAX);
    return 0;
}

int job_make_rate(json_t *value, uint64_t *rate, struct error *err)
{
    int code = json_get_size(value, "value", "rate", rate, err);
    if (code == 0 && *rate > INT64_MAX)
        code = error_set(err, E_INVALID, "field 'value.rate' is too large");
    return code;
}
