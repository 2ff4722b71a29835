/* The summary of a bucket: GET with the action summary-bck, and HEAD with bsumm_remote.
 *
 *   without an id   202 and an id: text of a GET, header Ais-Xaction-Id of a HEAD
 *   with the id     202 while it is being made, for summary_turn a request; then 200 and the
 *                   sums: a list of one in the body, or header Ais-Bucket-Summ
 *
 * The sums are those of the bucket's list.  A request that would take longer than a client waits is
 * answered with 202, and the next one goes on where it was (summaries.h). */
#pragma once

#include <jansson.h>

#include "common/error.h"
#include "net/http/handler.h"

/* 0: it has replied or will; a code: the caller replies. */
int ais_summary_start(struct http_request *req, json_t *value, struct error *err);
/* Headers may have been put already. */
int ais_summary_head(struct http_request *req, struct error *err);
