/* dfc_jobs_failed_total: the jobs that have failed, by kind. */
#pragma once

struct job;

/* A job has come to this state.  One that failed counts under both names of a kind that was
 * renamed: the old one goes with the next release. */
void job_count_failure(const struct job *job);
