/* Between nodes, on the control listener: registration, keepalives, states. */
#pragma once

#include "net/http/server.h"

extern const struct http_route control_routes[];
