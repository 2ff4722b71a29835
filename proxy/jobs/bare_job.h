/* The primary's part of starting a job by its name (POST /v1/jobs): from the request and the
 * documents to a job that is ready to be committed.  Pure but for the id.
 *
 *     {"action": "start", "name": kind, "value": {what the kind takes}}
 *
 * Kinds that take a value check it by their spec() (job_kind.h). */
#pragma once

#include "cluster/documents/job.h"
#include "cluster/documents/state.h"

/* E_INVALID, E_JSON, and job_make()'s errors. */
int bare_job_make(const struct cluster_state *s, const char *data, size_t len, int64_t wall_ms,
                  struct job **out, struct error *err);
