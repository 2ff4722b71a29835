/* The body of an S3 request that is a document: decoded, held against its digests (body.h), and
 * kept until it is whole. */
#pragma once

#include "gateway/gateway.h"

/* `data` is NUL-terminated, and lives as long as the request. */
typedef void collected_fn(struct http_request *req, const struct gateway_call *call,
                          const char *data, size_t len);

/* From a handler's begin.  `fn` gets the body, or the request has been replied to: beyond `max`
 * bytes with S3_ENTITY_TOO_LARGE. */
void gateway_collect(struct http_request *req, const struct gateway_call *call, size_t max,
                     collected_fn *fn);
