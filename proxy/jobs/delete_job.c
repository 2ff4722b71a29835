/* The primary's part of the job `delete` (xaction/objects_spec.h). */
#include "proxy/jobs/objects_job.h"
#include "proxy/jobs/objects_view.h"

const struct job_kind delete_kind = {
    .name = "delete",
    .objects = &(const struct objects_rule){.once = true,
                                            .removes = true,
                                            .instead = "delete its objects one by one, as "
                                                       "'dfcctl rm --recursive BUCKET/PREFIX' "
                                                       "does"},
    .fits = objects_job_fits,
    .judge = objects_view_outcome,
};
