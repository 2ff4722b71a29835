#include "proxy/primary/job_stop.h"

#include "common/mem.h"
#include "proxy/primary/proxy.h"

bool job_may_stop(const struct job *job)
{
    return job_may_move(job->state, JOB_STOPPING);
}

void job_stop(struct proxy *p, const struct job *job,
              void (*done)(void *arg, const struct error *err), void *arg)
{
    struct job *stopping = job_copy(job);
    stopping->state = JOB_STOPPING;
    stopping->stop_as = JOB_ABORTED;
    stopping->error_code = xstrdup(error_name(E_ABORTED));
    stopping->error_message = xstrdup("aborted on request");
    const struct command cmd = {.kind = CMD_JOB_UPDATE, .name = job->id, .job = stopping};
    proxy_commit(p, &cmd, done, arg);
    job_unref(stopping);
}
