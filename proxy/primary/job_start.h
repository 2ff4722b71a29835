/* The last step of every request that starts a job. */
#pragma once

#include "cluster/documents/job.h"

struct http_request;

enum { JOB_SPEC_MAX = JOB_DOCUMENT_MAX }; /* of its body: a spec may list objects by name */

/* Commits the job, whose reference it takes, and replies: 202 and {"id"}. */
void job_start(struct http_request *req, struct job *job);
/* 202 and {"id"}. */
void job_start_reply(struct http_request *req, const char *id);
/* The same with another reply. */
void job_start_as(struct http_request *req, struct job *job,
                  void (*reply)(struct http_request *req, const char *id));
