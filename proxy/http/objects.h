/* PUT, GET, HEAD and DELETE of /v1/objects/{bucket}/{object...}. */
#pragma once

#include "net/http/server.h"

extern const struct http_route object_routes[];
