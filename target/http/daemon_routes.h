/* What a target says of itself. */
#pragma once

#include <jansson.h>

#include "net/http/server.h"

extern const struct http_route daemon_routes[];

struct target;
/* How the mountpaths are: what=mountpaths, and the reply to a change of them. */
json_t *daemon_mountpaths_json(struct target *t);
