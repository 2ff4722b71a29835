/* How a cluster is, from its overview (GET /v1/cluster): pure.
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

json_t *health_judge(json_t *overview);
