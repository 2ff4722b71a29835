#pragma once

#include "gateway/gateway.h"

/* ListBuckets: those that the caller may list, or whose keys it may list in part. */
void s3_list_buckets(struct http_request *req, const struct gateway_call *call);
