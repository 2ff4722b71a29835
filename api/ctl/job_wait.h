/* Waiting for a job, with a progress bar; its end as an exit code. */
#pragma once

#include "api/ctl/ctl.h"

/* Before a job is started: do its flags go together? */
int job_check_wait(const struct ctl *ctl, const struct args *args);
/* After it: prints the id, or waits with --wait. */
int job_started(struct ctl *ctl, const struct args *args, const char *id);
int job_wait_end(struct ctl *ctl, const char *id, uint64_t timeout_ms);

/* For who prints the end itself: EXIT_OK where it has one, and *job is for dfc_job_free(). */
int job_wait_for(struct ctl *ctl, const char *id, uint64_t timeout_ms, struct dfc_job **job);
/* How it has ended, as an exit code. */
int job_exit_code(const struct dfc_job *job, json_t *doc);
/* Why it did not finish, on standard error. */
void job_print_reason(struct ctl *ctl, const struct dfc_job *job, json_t *doc);
