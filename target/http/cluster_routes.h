/* The cluster's documents at a target: pushed by the primary, asked for by anybody. */
#pragma once

#include "net/http/server.h"

extern const struct http_route cluster_routes[];
