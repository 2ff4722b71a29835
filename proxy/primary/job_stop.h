/* The first step of every request that aborts a job. */
#pragma once

#include "cluster/documents/job.h"

struct proxy;
struct error;

/* May a request still abort it? */
bool job_may_stop(const struct job *job);
/* Commits that the job stops as aborted.  done() as proxy_commit() calls it; the caller then wakes
 * the driver (job_glue_wake()).  E_JOB_STATE: it has ended meanwhile. */
void job_stop(struct proxy *p, const struct job *job,
              void (*done)(void *arg, const struct error *err), void *arg);
