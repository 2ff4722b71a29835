/* Login, and who somebody is. */
#pragma once

#include "net/http/server.h"

struct proxy;

/* The first line of calls that mean nothing without access control: as proxy_enter_objects(), and
 * E_UNSUPPORTED. */
struct proxy *auth_enter(struct http_request *req);

extern const struct http_route auth_routes[];
