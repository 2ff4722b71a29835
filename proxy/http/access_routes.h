/* /v1/users, /v1/roles and /v1/auth/explain: the document `access`, changed by operators.
 *
 * The routes are on the control listener alone, so that a caller has proven the cluster key and may
 * do everything.  No reply has a password, its hash or a sealed secret; a new secret is in the
 * reply to the call that makes it, and nowhere else. */
#pragma once

#include "net/http/handler.h"

extern const struct http_route access_routes[];
