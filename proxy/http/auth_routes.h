/* Login, and who somebody is. */
#pragma once

#include "net/http/server.h"

extern const struct http_route auth_routes[];
