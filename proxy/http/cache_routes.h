/* /v1/cache-groups: members of cache groups report, and readers ask for them.  The primary answers
 * (cache_groups.h). */
#pragma once

#include "net/http/server.h"

extern const struct http_route cache_routes[];
