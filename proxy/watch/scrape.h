/* The nodes of the cluster as Prometheus' http_sd_configs reads them: pure.
 *
 *   [{"targets": ["10.0.0.1:8080"],
 *     "labels": {"__scheme__": "http", "cluster": "c-…", "node": "p1", "node_role": "proxy"}}] */
#pragma once

#include <jansson.h>

#include "cluster/documents/state.h"

json_t *scrape_view(const struct cluster_state *s);
