/* The calls of rings: a proxy sends the client to the target of the lane, to the keeper, or, with a
 * push, to a target of the push's own. */
#pragma once

#include "net/http/server.h"

extern const struct http_route ring_routes[];
