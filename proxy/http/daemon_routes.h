/* What every daemon says of itself: /v1/daemon, /v1/health, /v1/api, /metrics. */
#pragma once

#include "net/http/server.h"

extern const struct http_route daemon_routes[];
