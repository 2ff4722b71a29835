/* The call that opens a session between two nodes (auth.h); in the tables of every daemon that has
 * intra-cluster listeners. */
#pragma once

#include "net/http/handler.h"

#define SESSION_PATH "/v1/intra/session"

extern const struct http_route session_routes[];
