/* /v1/cluster on the public listener: the cluster's document, and cluster-wide settings. */
#pragma once

#include "net/http/server.h"

extern const struct http_route cluster_routes[];
