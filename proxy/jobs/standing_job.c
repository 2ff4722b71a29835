#include "proxy/jobs/standing_job.h"

#include <string.h>

#include "common/mem.h"
#include "proxy/jobs/job_make.h"
#include "xaction/kinds.h"

bool standing_is(const struct job *job, const char *kind)
{
    return strcmp(job->kind, kind) == 0;
}

uint64_t standing_number(const struct job *job, const char *field)
{
    return (uint64_t)json_integer_value(json_object_get(job->spec, field));
}

const struct job *standing_unfinished(const struct cluster_state *s, const char *kind)
{
    for (size_t i = 0; i < s->jobs.count; i++) {
        const struct job *job = s->jobs.jobs[i];
        if (standing_is(job, kind) && !job_ended(job->state))
            return job;
    }
    return NULL;
}

int standing_check_none(const struct cluster_state *s, const char *kind, struct error *err)
{
    const struct job *job = standing_unfinished(s, kind);
    if (job == NULL)
        return 0;
    return error_set(err, E_JOB_STATE, "job '%s' of the kind '%s' has not ended", job->id,
                     xaction_kind_find(kind)->shown);
}

bool standing_may_follow(const struct job *last, int64_t retry_ms, int64_t wall_ms)
{
    if (last == NULL || last->state != JOB_FAILED)
        return last == NULL;
    /* One that ended later than now did so by the clock of another primary. */
    int64_t age_ms = wall_ms - last->ended_ms;
    return age_ms < 0 || age_ms >= retry_ms;
}

struct job *standing_new(const char *kind, int64_t wall_ms, json_t *spec)
{
    struct job *job = job_make_queued(kind, wall_ms);
    job->spec = spec;
    job->plan = json_object();
    return job;
}

void standing_take(const struct cluster_state *s, bool (*takes)(const struct node *n),
                   struct job *job)
{
    job->participants = xcalloc(s->smap.count, sizeof *job->participants);
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[i];
        if (n->role == NODE_TARGET && takes(n))
            job->participants[job->participant_count++] = xstrdup(n->id);
    }
}

int standing_check_targets(const struct job *job, const struct cluster_state *s, const char *then,
                           struct error *err)
{
    for (size_t i = 0; i < job->participant_count; i++) {
        if (smap_node(&s->smap, job->participants[i]) == NULL)
            return error_set(err, E_STALE_MAP, "target '%s' is gone; %s", job->participants[i],
                             then);
    }
    return 0;
}

bool standing_create(struct job *job, int64_t wall_ms, struct command *cmd)
{
    *cmd =
        (struct command){.kind = CMD_JOB_CREATE, .name = job->id, .job = job, .wall_ms = wall_ms};
    return true;
}
