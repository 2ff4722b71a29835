/* The primary's part of the job `unarchive` (xaction/objects_spec.h). */
#include "proxy/jobs/objects_job.h"
#include "proxy/jobs/objects_view.h"

const struct job_kind unarchive_kind = {
    .name = "unarchive",
    .objects = &(const struct objects_rule){.from = OBJECTS_ANY, .listed = true, .all = true},
    .fits = objects_job_fits,
    .judge = objects_view_outcome,
};
