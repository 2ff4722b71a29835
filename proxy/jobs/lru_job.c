/* The primary's part of the job `lru`: it is started by its name alone. */
#include "proxy/jobs/job_kind.h"

const struct job_kind lru_kind = {.name = "lru"};
