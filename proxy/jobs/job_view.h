/* A job as its users see it: the document of GET /v1/sort?id= and /v1/jobs/{id}, made from the
 * durable record and the targets' last reports.  Pure. */
#pragma once

#include <jansson.h>

#include "cluster/documents/job.h"
#include "cluster/documents/state.h"

/* `reports` is {"t1": report of xactions_report(), …} or NULL; while a job runs they are the last
 * ones heard, afterwards those kept in job->report.  `brief`: without "targets" and "spec". */
json_t *job_view(const struct job *job, const json_t *reports, bool brief);

/* The participants that a job which has not ended waits for: the map calls them unreachable.  An
 * array of their ids. */
json_t *job_view_waits(const struct job *job, const struct cluster_state *s);

/* The word for users: queued, running (of a sort: extracting merging creating), finished failed
 * aborted.  While a job is being undone it keeps the word of the phase that it was in, and the view
 * says "stopping": true. */
const char *job_view_state(const struct job *job, const json_t *reports);
bool job_view_is_state(const char *word);
