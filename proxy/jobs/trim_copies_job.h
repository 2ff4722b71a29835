/* The primary's part of the job `trim_copies`: where `copies` of a bucket was lowered, all targets
 * remove what they do not own of it any more (cluster/lower.h; target/jobs/mirror.h).
 *
 *   copies are lowered ─▶ all targets are there, and lag in nothing ─▶ job ─▶ finished
 *                              ▲                                        │        │
 *                              └── aborted: somebody falls behind, or ──┘        ▼
 *                                  owners or copies change             CMD_COPIES_LOWERED
 *
 * A job is of one bucket, and made for its fence (struct lower_fence), which is the spec.  One runs
 * at a time; one that fails lets the other buckets' go before it is tried again.
 *
 * Pure but for the id, which is drawn at random. */
#pragma once

#include "cluster/command.h"
#include "cluster/job.h"
#include "cluster/state.h"

enum { TRIM_RETRY_MS = 30000 };

/* By hand, or because it is wanted.  E_INVALID where there is nothing to be removed; E_JOB_STATE
 * while there is such a job; E_NODE_STATE while it could not end. */
int trim_copies_job_make(const struct cluster_state *s, int64_t wall_ms, struct job **out,
                         struct error *err);
/* E_ABORTED where its fence has moved. */
int trim_copies_job_fits(const struct job *job, const struct cluster_state *s, struct error *err);
/* What is next?  *cmd: a command to be committed, whose job, if it has one, is the caller's to
 * unref; or false. */
bool trim_copies_next(const struct cluster_state *s, int64_t wall_ms, struct command *cmd);
