/* The primary's part of the job `repair`: all active targets see to it that each owner of what
 * buckets with several copies have has it (target/jobs/repair.h).
 *
 *   a target lags, or copies were raised ─▶ repair_delay ─▶ job ─▶ finished ─▶ CMD_LAG_DONE, then
 *                                             │                      CMD_COPIES_FILLED
 *                                             └ somebody falls behind, or comes back so, or owners
 *                                               change: aborted, and another one follows
 *
 * A job is made for one fence (cluster/placement/lag.h): smap.lagged and smap.placed, and the
 * greatest bucket.raised, which its spec names.  Targets that are unreachable take no part (its
 * description names them), and who might need what only those have goes on lagging.  It waits for a
 * rebalance, which brings copies to new owners. Where no bucket keeps copies, a lag is taken back
 * at once.
 *
 * Pure but for the id, which is drawn at random. */
#pragma once

#include "proxy/jobs/job_kind.h"

enum { REPAIR_RETRY_MS = 30000 };

/* Of repair_kind: make(): E_INVALID without copies; E_NO_TARGETS; E_JOB_STATE while there is such a
 * job, or objects are being moved to new owners.  fits(): E_ABORTED where its fence has moved. */
