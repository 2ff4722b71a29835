/* The primary's part of the job `scrub`: all targets read what is on their disks, check it, and
 * move aside what is damaged (target/scrub/validate.h).
 *
 * One begins once a scrub_interval (periodic_job.h).  Targets that do not answer are left
 * out; one that goes away while it runs is waited for.  A scrub may take weeks: it holds no other
 * job up, and the cluster may change meanwhile.  Pure but for the id, which is drawn at random. */
#pragma once

#include "proxy/jobs/job_kind.h"

enum { SCRUB_RETRY_MS = 600000 };

/* Of scrub_kind: make(): E_NO_TARGETS.  fits(): E_STALE_MAP where one of its targets has left the
 * map: what the others have found stays. */

/* Since the last scrub began that has finished or is under way; without one, since the first bucket
 * was made; 0 without buckets. */
int64_t scrub_age_ms(const struct cluster_state *s, int64_t wall_ms);
