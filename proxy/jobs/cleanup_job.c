/* The primary's part of the job `cleanup`: it is started by its name alone. */
#include "proxy/jobs/job_kind.h"

const struct job_kind cleanup_kind = {.name = "cleanup"};
