/* Waiting for a job, with a progress bar; its end as an exit code. */
#pragma once

#include "api/ctl/ctl.h"

int job_wait_end(struct ctl *ctl, const char *id, uint64_t timeout_ms);
