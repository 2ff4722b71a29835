/* The primary's part of the job `evict` (xaction/objects_spec.h). */
#include "proxy/jobs/objects_job.h"
#include "proxy/jobs/objects_view.h"

const struct job_kind evict_kind = {
    .name = "evict",
    .objects = &(const struct objects_rule){.from = OBJECTS_CACHED, .once = true},
    .fits = objects_job_fits,
    .judge = objects_view_outcome,
};
