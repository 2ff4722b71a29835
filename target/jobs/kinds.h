/* The kinds of jobs as a target runs them: kinds.def is the table, and each kind is one file, which
 * defines its <shown>_xaction.  Nearly all are made with JOB_WORK() (job_base.h). */
#pragma once

#include "xaction/xaction.h"

/* The host of each is the struct target. */
#define KIND(name, shown, label, resumes, again, bare, undone, summary) \
    extern const struct xaction_ops shown##_xaction;
#include "xaction/kinds.def"
#undef KIND
