/* The routes of background jobs: /v1/sort and /v1/jobs. */
#pragma once

#include "net/http/server.h"

extern const struct http_route job_routes[];
