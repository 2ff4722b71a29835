#include "proxy/jobs/ended_jobs.h"

#include "proxy/jobs/periodic_job.h"

struct ended_jobs ended_jobs(const struct jobs *jobs, bool measure)
{
    struct ended_jobs e = {0};
    for (size_t i = 0; i < jobs->count; i++) {
        const struct job *job = jobs->jobs[i];
        if (!job_ended(job->state) || periodic_is_last(jobs, job))
            continue;
        e.count++;
        e.bytes += measure ? job_bytes(job) : 0;
        if (e.oldest == NULL || job->ended_ms < e.oldest->ended_ms)
            e.oldest = job;
    }
    return e;
}
