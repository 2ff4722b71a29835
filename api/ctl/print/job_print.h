/* Jobs for people. */
#pragma once

#include "api/ctl/ctl.h"
#include "common/buf.h"

void job_print(struct ctl *ctl, json_t *job);       /* one, in detail */
void job_print_list(struct ctl *ctl, json_t *jobs); /* an array */
/* "creating 12/40 shards 1.2 GiB/2.9 GiB 310 MiB/s ETA 5s" */
void job_progress_text(struct ctl *ctl, json_t *job, struct buf *out);
