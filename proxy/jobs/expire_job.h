/* The primary's part of the job `expire`: each target deletes the objects that lifecycle rules of
 * buckets expire, of names that it leads.
 *
 * One begins once a lifecycle_interval (periodic_job.h), if a bucket has a lifecycle document.
 * Active targets take part.  What others lead is left to the next job; one that goes away while it
 * runs is waited for.  A job by hand may be for one bucket: {"bucket": name}. */
#pragma once

#include "proxy/jobs/job_kind.h"

enum { EXPIRE_RETRY_MS = 600000 };

/* Of expire_kind: make(): E_NO_TARGETS.  fits(): E_BUCKET_NOT_FOUND; E_STALE_MAP where one of its
 * targets has left the map. */
