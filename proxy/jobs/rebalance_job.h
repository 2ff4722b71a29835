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

#include "proxy/jobs/job_kind.h"

enum { REBALANCE_RETRY_MS = 30000 };

/* Of rebalance_kind: make(): E_NODE_UNREACHABLE where a target does not answer: what it holds could
 * not be moved.  fits(): E_ABORTED where the owners have changed; E_STALE_MAP where one of its
 * targets is gone. */
