/* PUT /v1/cluster {"action": …, "name": node, "value": {"force": bool}}: what an operator decides
 * about a target.
 *
 *   startmaintenance   it owns nothing; a rebalance moves off what it has; it stays in the map
 *   stopmaintenance    it owns again; its share is moved back.  Also ends a decommission
 *   decommission       as maintenance, and when it has nothing any more it leaves the map
 *
 * With force also where what only this node has cannot be moved: maintenance of one that does not
 * answer leaves its objects out of reach until it is back; a decommission gives them up, and it is
 * gone at once. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "net/http/server.h"

/* False: it is none of these actions.  Else *code says how it went; 0: it replies later. */
bool node_action(struct http_request *req, const char *action, const char *name, json_t *value,
                 int *code, struct error *err);
