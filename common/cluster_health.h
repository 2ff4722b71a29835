/* How a cluster is, from its overview (GET /v1/cluster): pure.  Proxies add the verdict to the
 * overview; dfcctl and the web console show it, the primary exports the colour as a metric.
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
/* The verdict that the overview has, or a judgement: nodes of older releases send none. */
json_t *cluster_health_said(json_t *overview);
const char *cluster_health_colour(json_t *overview); /* one of the colours */
