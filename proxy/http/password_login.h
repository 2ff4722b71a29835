/* Login with a password: the body {"user", "password"} of POST /v1/auth/token. */
#pragma once

#include <jansson.h>

#include "net/http/server.h"

/* Replies now or later: two hashes at a time are computed at a proxy, in its own threads.  `doc` is
 * the body, an object. */
void password_login_begin(struct http_request *req, json_t *doc);
