/* The primary's part of the job `rebalance`: all targets send what another one owns by the present
 * map to that owner (target/jobs/rebalance.h).
 *
 *   owners change ─▶ rebalance_delay ─▶ job ─▶ finished ─▶ CMD_MOVES_DONE: no earlier owner left
 *                                        │                 ─▶ who is decommissioning leaves the map
 *                                        └ owners change again: aborted, and another one follows
 *
 * A job is made for one set of owners, smap.placed, which its spec names.  Pure but for the id,
 * which is drawn at random. */
#pragma once

#include "cluster/command.h"
#include "cluster/job.h"
#include "cluster/state.h"

enum { REBALANCE_RETRY_MS = 30000 };

bool rebalance_job_is(const struct job *job);
/* E_NODE_UNREACHABLE where a target does not answer: what it holds could not be moved; E_JOB_STATE
 * while there is such a job. */
int rebalance_job_make(const struct cluster_state *s, int64_t wall_ms, struct job **out,
                       struct error *err);
/* Are the owners those that it was made for?  E_ABORTED where they are not; E_STALE_MAP
 * where one of its targets is gone. */
int rebalance_job_fits(const struct job *job, const struct cluster_state *s, struct error *err);

/* What is next?  *cmd: a command to be committed, whose job, if it has one, is the caller's to
 * unref; or false.  stood_ms: for how long the owners have been the same. */
bool rebalance_next(const struct cluster_state *s, uint64_t stood_ms, int64_t wall_ms,
                    struct command *cmd);
