/* This target's part in one sort: the job as it is in the present attempt, and the files of the
 * request.  The host owns it (host.h); pins, outputs and slices borrow it for as long as they
 * live. */
#pragma once

#include <stdatomic.h>

#include "cluster/documents/job.h"
#include "cluster/documents/state.h"
#include "sort/spec/spec.h"
#include "sort/task/plan.h"

struct target;

struct sort_part {
    struct target *target;
    struct job *job;
    struct sort_spec *spec;
    struct sort_plan *plan;
    unsigned self;                    /* the target's number in the plan */
    struct bucket_props output_props; /* of the outputs' bucket */
    atomic_bool stopped;
};
