/* The primary's part of the job `repair`: all active targets see to it that each owner of what
 * buckets with several copies have has it (target/jobs/repair.h).
 *
 *   a target lags, or copies were raised ─▶ repair_delay ─▶ job ─▶ finished ─▶ CMD_LAG_DONE, then
 *                                             │                      CMD_COPIES_FILLED
 *                                             └ somebody falls behind, or comes back so, or owners
 *                                               change: aborted, and another one follows
 *
 * A job is made for one fence (cluster/lag.h): smap.lagged and smap.placed, and the greatest
 * bucket.raised, which its spec names.  Targets that are unreachable take no part (its description
 * names them), and who might need what only those have goes on lagging.  It waits for a rebalance,
 * which brings copies to new owners. Where no bucket keeps copies, a lag is taken back at once.
 *
 * Pure but for the id, which is drawn at random. */
#pragma once

#include "cluster/command.h"
#include "cluster/job.h"
#include "cluster/state.h"

enum { REPAIR_RETRY_MS = 30000 };

bool repair_job_is(const struct job *job);
/* By hand, or because it is wanted.  E_INVALID without copies; E_NO_TARGETS; E_JOB_STATE while
 * there is such a job, or the owners' objects are being moved. */
int repair_job_make(const struct cluster_state *s, int64_t wall_ms, struct job **out,
                    struct error *err);
/* E_ABORTED where its fence has moved. */
int repair_job_fits(const struct job *job, const struct cluster_state *s, struct error *err);

/* What the settle time counts from anew whenever it changes. */
struct repair_fence {
    uint64_t lagged, placed, raised;
};
struct repair_fence repair_fence(const struct cluster_state *s);
bool repair_fence_equal(const struct repair_fence *a, const struct repair_fence *b);

/* What is next?  *cmd: a command to be committed, whose job, if it has one, is the caller's to
 * unref; or false.  stood_ms: for how long the fence has been the same. */
bool repair_next(const struct cluster_state *s, uint64_t stood_ms, int64_t wall_ms,
                 struct command *cmd);
