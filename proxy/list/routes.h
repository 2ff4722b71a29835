/* GET /v1/objects/{bucket}: the targets' lists as one. */
#pragma once

#include "net/http/server.h"

extern const struct http_route list_routes[];
