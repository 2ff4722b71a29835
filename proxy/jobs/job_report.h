/* What an ended job keeps of what its targets said last: pure.
 *
 * That is part of its document, and what a metastore takes at once has an end (etcd_request_max).
 * An end that it refuses is tried again with less, or the job would never end: */
#pragma once

#include <jansson.h>

enum job_brevity {
    JOB_REPORT_WHOLE,
    JOB_REPORT_FEW_WARNINGS, /* JOB_REPORT_FEW of each target */
    JOB_REPORT_FIGURES,      /* their number alone */
    JOB_REPORT_NONE,         /* of no target anything */
};

#define JOB_REPORT_FEW 5

/* `reports` ({"t1": report, …}), which is the function's, as brief as that. */
json_t *job_report_brief(json_t *reports, enum job_brevity brevity);
