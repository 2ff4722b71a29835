/* What peers and the primary ask of a target's background jobs.
 *
 *   control   POST/GET /v1/xactions/{job}                     orders and reports
 *   data      POST /v1/xactions/{job}/merge|orders|records     sort's streams
 *
 * A reply of records holds the job (xactions_hold) as long as it is open. */
#pragma once

#include "net/http/server.h"

extern const struct http_route xaction_routes[];
extern const struct http_route sort_stream_routes[];
