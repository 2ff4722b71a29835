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
#include <stdbool.h>

/* Is it the primary's own?  Only that tells of the primary's version. */
bool health_primary_answered(json_t *overview);
/* copies: GET /v1/cluster/documents, or NULL. */
json_t *health_judge(json_t *overview, json_t *copies);
