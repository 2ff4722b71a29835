/* The job `cleanup` on a target: everything at once that the sweeper (sweep.h) does in its time.
 * (What jobs have left that the cluster no longer knows goes with every new state, and so also with
 * the one that brings this job: job_files.h.) */
#pragma once

#include "xaction/xaction.h"

extern const struct xaction_ops cleanup_xaction; /* its host is struct target */
