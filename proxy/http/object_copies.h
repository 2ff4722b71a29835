/* What every target has of one object, as it is on its disk, beside what the map says of who owns
 * it.
 *
 *   client ── GET /v1/copies/b/o ──▶ proxy ──▶ GET /v1/copies/{bucket id}/o at each target's data
 *   listener, all at once; a target that does not answer is in the reply with its error.
 *
 * In the list loop, as lists are. */
#pragma once

#include "net/http/server.h"

extern const struct http_route object_copies_routes[];
