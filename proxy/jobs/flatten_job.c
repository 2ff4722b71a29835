/* The primary's part of the job `flatten` (xaction/objects_spec.h). */
#include "proxy/jobs/objects_job.h"
#include "proxy/jobs/objects_view.h"

const struct job_kind flatten_kind = {
    .name = "flatten",
    .objects = &(const struct objects_rule){.all = true,
                                            .removes = true,
                                            .instead = "flatten its plogs one by one, as "
                                                       "'dfcctl plog flatten' does without --job"},
    .fits = objects_job_fits,
    .judge = objects_view_outcome,
};
