/* What nodes ask of a proxy for an S3 request (gateway/proxy_call.h): /v1/s3/{bucket} of the
 * control listener.  The node has decided the user's right. */
#pragma once

#include "net/http/handler.h"

extern const struct http_route bucket_calls[];
