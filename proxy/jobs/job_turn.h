/* Whose turn it is: jobs whose output could have the same names run one after the other, in the
 * order in which they were created.  So the first has its names for sure, and the next one finds
 * them there, instead of both failing over each other's half.  And while objects are moved
 * to new owners no job begins that goes by where they lie.  Pure. */
#pragma once

#include <stdbool.h>

#include "cluster/documents/job.h"
#include "cluster/documents/state.h"

/* Does a queued job wait for one that was created before it? */
bool job_must_wait_for_moves(const struct job *job, const struct cluster_state *s);
/* Are the cluster's targets still so many as take part?  0, or E_STALE_MAP. */
int job_check_targets(const struct job *job, const struct cluster_state *s, size_t targets,
                      struct error *err);
bool job_must_wait(const struct job *job, const struct cluster_state *s);
