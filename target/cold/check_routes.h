/* GET /v1/backends: asks a backend once, for a proxy that is about to make a bucket of it. */
#pragma once

#include "net/http/server.h"

extern const struct http_route cold_check_routes[];
