/* /v1/daemon/indexes: how the mountpaths' indexes are, and having them rebuilt (reindexer.h). */
#pragma once

#include "net/http/server.h"

extern const struct http_route index_routes[];
