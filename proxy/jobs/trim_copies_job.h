/* The primary's part of the job `trim_copies`: where `copies` of a bucket was lowered, all targets
 * remove what they do not own of it any more (cluster/placement/copies_reduce.h;
 * target/jobs/trim_copies.h).
 *
 *   copies are lowered ─▶ all targets are there, and lag in nothing ─▶ job ─▶ finished
 *                              ▲                                        │        │
 *                              └── aborted: somebody falls behind, or ──┘        ▼
 *                                  owners or copies change             CMD_COPIES_LOWERED
 *
 * A job is of one bucket, and made for its fence (struct copies_reduce_fence), which is the spec.
 * One runs at a time; one that fails lets the other buckets' go before it is tried again.
 *
 * Pure but for the id, which is drawn at random. */
#pragma once

#include "proxy/jobs/job_kind.h"

enum { TRIM_RETRY_MS = 30000 };

/* Of trim_copies_kind: make(): E_INVALID where there is nothing to be removed; E_NODE_STATE while
 * it could not end.  fits(): E_ABORTED where its fence has moved. */
