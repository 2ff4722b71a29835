/* What goes on: events, rates, and the mountpaths of a target. */
#pragma once

#include "net/http/server.h"

extern const struct http_route watch_routes[];
