/* How far a job `archive` is, as jobs over objects say it (target/store/job_tally.h). */
#pragma once

#include <jansson.h>

/* sort: sort_task_status(); NULL: there is none yet. */
json_t *archive_view(const json_t *sort, double seconds);
