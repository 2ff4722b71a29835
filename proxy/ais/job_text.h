/* The reply to a call of the dialect that starts a job. */
#pragma once

#include "net/http/handler.h"

/* 202 and the id as plain text: for job_start_as(). */
void job_text_reply(struct http_request *req, const char *id);
