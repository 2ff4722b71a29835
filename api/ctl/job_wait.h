/* Waiting for a job, with a progress bar; its end as an exit code. */
#pragma once

#include "api/ctl/ctl.h"

/* Before a job is started: do its flags go together? */
int job_check_wait(const struct ctl *ctl, const struct args *args);
/* After it: prints the id, or waits with --wait. */
int job_started(struct ctl *ctl, const struct args *args, const char *id);
int job_wait_end(struct ctl *ctl, const char *id, uint64_t timeout_ms);
