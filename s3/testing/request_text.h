/* A request for tests and fuzzers, out of one text:
 *
 *     GET
 *     /bucket/key
 *     a=b&c
 *     host:example.com
 *     x-amz-date:20130524T000000Z
 *
 * Method, path and query have a line each, which may be missing or empty.  A header without ':' has
 * the value "". */
#pragma once

#include "s3/request.h"

/* All texts are the arena's. */
struct s3_request request_text(struct arena *arena, const char *text, size_t len);
