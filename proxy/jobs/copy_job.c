/* The primary's part of the job `copy` (xaction/objects_spec.h). */
#include "proxy/jobs/objects_job.h"
#include "proxy/jobs/objects_view.h"

const struct job_kind copy_kind = {
    .name = "copy",
    .objects = &(const struct objects_rule){.from = OBJECTS_ANY, .listed = true, .all = true},
    .fits = objects_job_fits,
    .judge = objects_view_outcome,
};
