/* POST /v1/auth/url: a URL for one download or upload by whoever has it (access/signed_url.h). */
#pragma once

#include "net/http/server.h"

extern const struct http_route signed_url_routes[];
