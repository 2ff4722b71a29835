/* POST /v1/auth/reseal: after a change of the cluster key, the secrets of users are sealed under
 * its new first line.  Then the old line may be removed from the key file of every node. */
#pragma once

#include "net/http/handler.h"

extern const struct http_route reseal_routes[];
