/* /v1/buckets: make, look at, change, destroy. */
#pragma once

#include "net/http/server.h"

extern const struct http_route bucket_routes[];
