/* The S3 operations that a proxy carries out (gateway/gateway.h). */
#pragma once

#include "gateway/gateway.h"

extern const struct gateway_handler proxy_s3_handlers[];
/* The rows of the route tables. */
extern const struct http_route s3_routes[];
