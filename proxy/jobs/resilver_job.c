#include "proxy/jobs/resilver_job.h"

#include <string.h>

#include "common/mem.h"
#include "common/rng.h"

bool resilver_job_is(const struct job *job)
{
    return strcmp(job->kind, "resilver") == 0;
}

static bool is_of(const struct job *job, const char *target)
{
    return resilver_job_is(job) && job->participant_count == 1 &&
           strcmp(job->participants[0], target) == 0;
}

static uint64_t generation_of(const struct job *job)
{
    return (uint64_t)json_integer_value(json_object_get(job->spec, "generation"));
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
        if (generation_of(job) != generation)
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
    char id[4 + 11];
    random_id("rsl-", id);
    struct job *job = job_new(id, "resilver");
    job->state = JOB_QUEUED;
    job->description = xstrdup(target);
    job->created_ms = wall_ms;
    job->spec = json_pack("{s:s, s:I}", "target", target, "generation", (json_int_t)generation);
    job->plan = json_object();
    job->participants = xcalloc(1, sizeof *job->participants);
    job->participants[0] = xstrdup(target);
    job->participant_count = 1;
    return job;
}
