/* The primary's part of the job `prefetch` (xaction/objects_spec.h). */
#include "proxy/jobs/objects_job.h"
#include "proxy/jobs/objects_view.h"

const struct job_kind prefetch_kind = {
    .name = "prefetch",
    .objects = &(const struct objects_rule){.from = OBJECTS_CACHED, .listed = true, .all = true},
    .fits = objects_job_fits,
    .judge = objects_view_outcome,
};
