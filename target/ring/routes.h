/* The calls of rings on a target: pushes, samples, status, swap and clear; and the reports of other
 * targets' lanes. */
#pragma once

#include "net/http/server.h"

extern const struct http_route ring_routes[];
