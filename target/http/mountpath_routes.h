/* PUT /v1/daemon/mountpaths: mountpaths come and go while the target runs (mountpaths.h). */
#pragma once

#include "net/http/server.h"

extern const struct http_route mountpath_routes[];
