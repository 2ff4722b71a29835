/* Starts a job over the objects of a bucket: the rights, the document, the reply. */
#pragma once

#include <jansson.h>

#include "net/http/handler.h"

/* `kind` has a struct objects_rule.  `value` as proxy/jobs/objects_job.h takes it; borrowed.  0: it
 * has replied or will, by reply(); a code: the caller replies.  At the primary. */
int objects_start(struct http_request *req, const char *kind, json_t *value,
                  void (*reply)(struct http_request *req, const char *id), struct error *err);
/* Is there such a kind? */
bool objects_start_has(const char *kind);
