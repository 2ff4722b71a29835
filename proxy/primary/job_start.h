/* The last step of every request that starts a job. */
#pragma once

#include "cluster/documents/job.h"

struct http_request;

enum { JOB_SPEC_MAX = JOB_DOCUMENT_MAX }; /* of its body: a spec may list objects by name */

/* Commits the job, whose reference it takes, and replies: 202 and its id. */
void job_start(struct http_request *req, struct job *job);
