/* /v1/buckets: make, look at, change, destroy. */
#pragma once

#include "net/http/server.h"

extern const struct http_route bucket_routes[];

/* The calls "bucket_create" (POST) and "bucket_destroy" (DELETE) with this body, for a request
 * whose route has the parameter `bucket`; on the primary (proxy_passed_to_primary()).  Replies, and
 * asks for the rights that the routes do not name. */
void bucket_post(struct http_request *req, const char *body, size_t len);
void bucket_delete_by(struct http_request *req, const char *body, size_t len);
