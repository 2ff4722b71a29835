/* The primary's part of the job `resilver`: one target moves its objects between its mountpaths.  A
 * target whose set of mountpaths is not settled says so with every keepalive, with the generation
 * of its roster (target/format/roster.h), and is given a job.  Pure but for the id, which is drawn
 * at random. */
#pragma once

#include "proxy/jobs/job_kind.h"

enum { RESILVER_RETRY_MS = 30000 };

/* Shall there be a new one?  Not while one is there; not after one of this generation was aborted
 * by hand; after a failed one when some time has passed. */
bool resilver_job_wanted(const struct cluster_state *s, const char *target, uint64_t generation,
                         int64_t wall_ms);
struct job *resilver_job_make(const char *target, uint64_t generation, int64_t wall_ms);
