#include "proxy/jobs/resilver_job.h"

#include <string.h>

#include "common/mem.h"
#include "proxy/jobs/standing_job.h"

static const char kind[] = "resilver";

static bool is_of(const struct job *job, const char *target)
{
    return standing_is(job, kind) && job->participant_count == 1 &&
           strcmp(job->participants[0], target) == 0;
}

bool resilver_job_wanted(const struct cluster_state *s, const char *target, uint64_t generation,
                         int64_t wall_ms)
{
    for (size_t i = 0; i < s->jobs.count; i++) {
        const struct job *job = s->jobs.jobs[i];
        if (!is_of(job, target))
            continue;
        if (!job_ended(job->state))
            return false;
        if (standing_number(job, "generation") != generation)
            continue;
        /* One that ended later than now did so by the clock of another primary. */
        int64_t age_ms = wall_ms - job->ended_ms;
        if (job->state == JOB_ABORTED || (age_ms >= 0 && age_ms < RESILVER_RETRY_MS))
            return false;
    }
    return true;
}

struct job *resilver_job_make(const char *target, uint64_t generation, int64_t wall_ms)
{
    struct job *job = standing_new(
        kind, wall_ms,
        json_pack("{s:s, s:I}", "target", target, "generation", (json_int_t)generation));
    job->description = xstrdup(target);
    job->participants = xcalloc(1, sizeof *job->participants);
    job->participants[0] = xstrdup(target);
    job->participant_count = 1;
    return job;
}

static bool next(const struct cluster_state *s, const struct standing_now *now, struct command *cmd)
{
    for (size_t i = 0; i < s->smap.count && now->unsettled != NULL; i++) {
        const struct node *n = &s->smap.nodes[i];
        bool active = n->role == NODE_TARGET && n->state == NODE_ACTIVE;
        uint64_t generation = active ? now->unsettled(now->ctx, n->id) : 0;
        if (generation != 0 && resilver_job_wanted(s, n->id, generation, now->wall_ms))
            return standing_create(resilver_job_make(n->id, generation, now->wall_ms), now->wall_ms,
                                   cmd);
    }
    return false;
}

/* Only its own target matters to it: it fits any map, and is not started by hand. */
const struct job_kind resilver_kind = {
    .name = kind,
    .outlasts_members = true,
    .load = JOB_FREE, /* it may wait for long, for uploads and samples */
    .next = next,
};
