/* GET /ui and below: the web console (console/console.h).  Its files are the same for everybody and
 * tell nothing of the cluster, so that they need no right; the page then makes public calls with
 * the token of its user. */
#pragma once

#include "net/http/server.h"

extern const struct http_route console_routes[];
