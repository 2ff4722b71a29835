/* What standing jobs have in common that begin once an interval: `scrub`, `expire`.
 *
 * One begins when the interval is over since the last one began, or since the first bucket was
 * made; not while one is there; after a failed one when some time has passed.  A job that is for
 * one bucket alone (its spec has "bucket") was started by hand, and changes none of this.
 *
 * Pure but for the ids, which are drawn at random. */
#pragma once

#include "proxy/jobs/job_kind.h"

struct periodic {
    const char *kind;
    uint64_t interval_ms; /* 0: none begins */
    int64_t retry_ms;
};

bool periodic_is_due(const struct cluster_state *s, const struct periodic *p, int64_t wall_ms);
/* Of all targets that the kind takes; the description names those that are left out.  E_JOB_STATE
 * while there is one; E_NO_TARGETS. */
int periodic_make(const struct cluster_state *s, const char *kind,
                  bool (*takes)(const struct node *n), int64_t wall_ms, struct job **out,
                  struct error *err);
/* Is it the last one of a kind that is `periodic`?  It is not forgotten: the next one is due by it.
 */
bool periodic_is_last(const struct jobs *jobs, const struct job *job);
/* When the first bucket was made; false: there is none. */
bool periodic_first_bucket(const struct cluster_state *s, int64_t *created_ms);
