/* The primary's part of the job `census`: it is started by its name alone. */
#include "proxy/jobs/job_kind.h"

const struct job_kind census_kind = {.name = "census"};
