/* What a target says of itself. */
#pragma once

#include "net/http_server.h"

extern const struct http_route daemon_routes[];
