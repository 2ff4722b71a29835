/* What of an object lies on this target's disk, as it is there: for `dfcctl object show`, which
 * asks every target.  Nothing is compared, brought here or mended by looking. */
#pragma once

#include "net/http/server.h"

/* GET /v1/copies/{bucket_id}/{object...} */
extern const struct http_route object_inspect_routes[];
