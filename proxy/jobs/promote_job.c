/* The primary's part of the job `promote` (xaction/objects_spec.h). */
#include "proxy/jobs/objects_job.h"
#include "proxy/jobs/objects_view.h"

const struct job_kind promote_kind = {
    .name = "promote",
    .objects = &(const struct objects_rule){.from = OBJECTS_OWN,
                                            .instead = "put the files, or promote into a bucket "
                                                       "without one",
                                            .fills = true,
                                            .once = true},
    .fits = objects_job_fits,
    .judge = objects_view_outcome,
};
