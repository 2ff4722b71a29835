/* What every kind's jobs begin with at the primary: an id, the targets that take part, a bounded
 * document.  Pure but for the id, which is drawn at random. */
#pragma once

#include "cluster/documents/job.h"
#include "cluster/documents/state.h"

#define JOBS_BYTES_MAX (16 << 20) /* of the documents of all unfinished jobs */

/* A queued job of this kind (a row of xaction/kinds.def), with an id and nothing else. */
struct job *job_make_queued(const char *kind, int64_t wall_ms);
/* The same, in which every target takes part that may
 * hold objects.  E_NODE_UNREACHABLE where one does not answer, for what it holds would be passed
 * over; E_NO_TARGETS. */
int job_make(const struct cluster_state *s, const char *kind, int64_t wall_ms, struct job **out,
             struct error *err);
/* The documents go to every node with every change: E_TOO_LARGE where this one exceeds
 * JOB_DOCUMENT_MAX, or may do so before the job ends (targets would take no order then, nor read
 * again what they have of it); E_OVERLOAD where all unfinished ones would exceed JOBS_BYTES_MAX. */
int job_check_size(const struct cluster_state *s, const struct job *job, struct error *err);
/* "rate" of a request's value: bytes a second, 0: no limit.  Where it is not given, *rate stays. */
int job_make_rate(json_t *value, uint64_t *rate, struct error *err);
