/* How a cluster is, from its overview (GET /v1/cluster): pure.  dfcctl shows it with the reasons,
 * the primary exports the colour as a metric.
 *
 *   green    everybody is there
 *   yellow   all objects are served, and something wants looking after
 *   red      objects or changes are refused
 *
 *   {"health": "yellow", "reasons": [{"health": "yellow", "node": "p2", "text": "…"}]}
 *
 * The worst come first.  A reason that is not a node's has no "node". */
#pragma once

#include <jansson.h>

extern const char *const cluster_health_colours[]; /* the best first; then NULL */

json_t *cluster_health_judge(json_t *overview);
const char *cluster_health_colour(json_t *overview); /* one of the colours */
