/* GetObject and HeadObject with partNumber: one part of an object that was uploaded in parts.
 *
 *   HEAD ── sizes of the parts, entity tag ─▶ GET with Range and If-Match ─▶ 206
 *
 * Parts count from 1 in the order of their bytes.  An object without known parts is its only part.
 * Both calls go by HTTP, at the object's target, too. */
#pragma once

#include "gateway/gateway.h"

#define PART_NUMBER "partNumber"

/* Of a read.  S3_INVALID_ARGUMENT; S3_INVALID_REQUEST: it has a Range, too. */
enum s3_error object_part_check(const struct gateway_call *call, struct s3_failure *why);
/* Of a request that object_part_check() has taken.  S3_INVALID_PART_NUMBER: no such part;
 * S3_SLOW_DOWN: the object was replaced between the two calls. */
void object_part_read(struct http_request *req, const struct gateway_call *call);
