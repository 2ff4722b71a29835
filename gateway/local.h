/* A native call that this target carries out itself: the object's handlers run in the same thread
 * with a head of the native API (http_recast()), and a GET leaves by sendfile.
 *
 *   client ── body ──▶ decoded and summed (body.h) ──▶ the target's handler
 *   client ◀── headers of S3, bytes as they are ◀──── its reply
 *
 * A body that proves wrong is cut, as if the client had gone: nothing of it becomes visible. */
#pragma once

#include "gateway/forward.h"

/* Does this target act for the object? */
bool local_takes(const struct gateway_call *call);
/* Then; otherwise as forward_start(). */
void local_start(struct http_request *req, const struct gateway_call *call,
                 const struct forward_plan *plan);
/* Here, or by the target that acts for the object. */
void local_or_forward(struct http_request *req, const struct gateway_call *call,
                      const struct forward_plan *plan);
