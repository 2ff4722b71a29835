/* The primary's part of starting a sort: from the request and the documents to a job that is ready
 * to be committed.  Pure but for the salt and the id, which are drawn at random. */
#pragma once

#include "cluster/documents/job.h"
#include "cluster/documents/state.h"

/* E_SPEC, E_JSON, E_UNSUPPORTED for the request itself; E_BUCKET_NOT_FOUND; E_NO_TARGETS;
 * E_NODE_UNREACHABLE where more targets do not answer than the job can do without; E_TOO_LARGE
 * where the job's document exceeds JOB_DOCUMENT_MAX, E_OVERLOAD where all unfinished ones exceed
 * their limit. */
int sort_job_make(const struct cluster_state *s, json_t *request, int64_t wall_ms, struct job **out,
                  struct error *err);
/* What it adds to a request over these buckets (sort/task/plan.h), for a job whose participants are
 * all targets that take part. */
int sort_job_plan(const struct cluster_state *s, uint64_t input_bucket_id,
                  uint64_t output_bucket_id, json_t **out, struct error *err);
/* Would the job, planned from an earlier state, still be right in this one?  E_STALE_MAP where a
 * target's weight is another, so that outputs would lie where nobody looks for them;
 * E_BUCKET_NOT_FOUND where one of the buckets was destroyed. */
int sort_job_fits(const struct job *job, const struct cluster_state *s, struct error *err);
/* All targets have done their part: 0, or E_NOTHING_MATCHED where the input has no records. */
int sort_job_outcome(const struct job *job, const json_t *reports, struct error *err);
/* How many targets it can do without: each input (its key map included), and each output, has one
 * more owner than that, and one target is left. */
size_t sort_job_spares(const struct job *job, const struct cluster_state *s);

#define SORT_JOB_NAMES_LOOKED_AT 65536
#define SORT_JOB_NAMES_SHOWN 100
/* The input shards none of whose owners answers, for which the job waits: the first of them, among
 * the first that the request names.  Of a prefix, and of objects in slices, nobody can say. */
json_t *sort_job_unreachable(const struct job *job, const struct cluster_state *s);
