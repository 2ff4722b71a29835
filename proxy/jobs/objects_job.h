/* The primary's part of starting the jobs `delete`, `copy`, `prefetch`, `evict` and `download`:
 * from the request and the documents to a job that is ready to be committed.  Pure but for the id.
 */
#pragma once

#include <jansson.h>

#include "proxy/jobs/job_kind.h"

/* value as xaction/objects_spec.h takes it, or of a download xaction/download_spec.h.  Its errors,
 * job_make()'s and job_check_size()'s; E_BUCKET_NOT_FOUND; E_INVALID for a copy onto itself, and
 * for a prefetch or an eviction of a bucket without a backend. */
int objects_job_make(const struct cluster_state *s, const char *kind, const char *bucket,
                     json_t *value, int64_t wall_ms, struct job **out, struct error *err);
/* E_BUCKET_NOT_FOUND where one of its buckets was destroyed since. */
int objects_job_fits(const struct job *job, const struct cluster_state *s, struct error *err);
