#include "proxy/jobs/periodic_job.h"

#include "common/buf.h"
#include "common/mem.h"
#include "proxy/jobs/standing_job.h"

static bool counts(const struct job *job, const char *kind)
{
    return standing_is(job, kind) && json_object_get(job->spec, "bucket") == NULL;
}

static const struct job *last_of(const struct jobs *jobs, const char *kind)
{
    const struct job *last = NULL;
    for (size_t i = 0; i < jobs->count; i++) {
        const struct job *job = jobs->jobs[i];
        if (counts(job, kind) && (last == NULL || job->created_ms >= last->created_ms))
            last = job;
    }
    return last;
}

bool periodic_is_last(const struct jobs *jobs, const struct job *job)
{
    const struct job_kind *kind = job_kind_find(job->kind);
    return kind != NULL && kind->periodic && last_of(jobs, kind->name) == job;
}

bool periodic_first_bucket(const struct cluster_state *s, int64_t *created_ms)
{
    for (size_t i = 0; i < s->bmd.count; i++) {
        if (i == 0 || s->bmd.buckets[i].created_ms < *created_ms)
            *created_ms = s->bmd.buckets[i].created_ms;
    }
    return s->bmd.count > 0;
}

bool periodic_is_due(const struct cluster_state *s, const struct periodic *p, int64_t wall_ms)
{
    int64_t since_ms;
    const struct job *last = last_of(&s->jobs, p->kind);
    if (p->interval_ms == 0 || standing_unfinished(s, p->kind) != NULL)
        return false;
    if (last != NULL && last->state == JOB_FAILED && wall_ms - last->ended_ms >= p->retry_ms)
        return true;
    if (last != NULL)
        since_ms = last->created_ms;
    else if (!periodic_first_bucket(s, &since_ms))
        return false;
    return wall_ms - since_ms >= (int64_t)p->interval_ms;
}

static char *describe(const struct cluster_state *s, bool (*takes)(const struct node *n))
{
    _cleanup_(buf_done)
    struct buf left_out = BUF_INIT;
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[i];
        if (n->role == NODE_TARGET && !takes(n))
            buf_printf(&left_out, "%s%s", left_out.len > 0 ? ", " : "without ", n->id);
    }
    return xstrdup(buf_str(&left_out));
}

int periodic_make(const struct cluster_state *s, const char *kind,
                  bool (*takes)(const struct node *n), int64_t wall_ms, struct job **out,
                  struct error *err)
{
    int code = standing_check_none(s, kind, err);
    if (code != 0)
        return code;
    struct job *job = standing_new(kind, wall_ms, json_object());
    standing_take(s, takes, job);
    job->description = describe(s, takes);
    if (job->participant_count > 0) {
        *out = job;
        return 0;
    }
    job_unref(job);
    return error_set(err, E_NO_TARGETS, "the cluster has no target that answers");
}
