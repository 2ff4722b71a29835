/* What a target says of its lanes to the keeper, and what the keeper answers, as JSON
 * (POST /v1/ring-counts/ID).  Pure.
 *
 *   {"node": "t1", "lanes": [{"lane": "t1.5f0c", "first": 0, "count": 9, "closed": false,
 *                             "drained": false,
 *                             "drop_to": 5,                   absent: 0
 *                             "holes": [[2, 3], …]}, …]}      absent: none
 *   {"lanes": [{"release": 0, "sealed": 4, "taken": 5, "forget": false}, …]}
 *
 * The answers are in the order of the lanes. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "common/error.h"
#include "ring/keeper.h"

#define RING_ORDINAL_MAX (UINT64_C(1) << 48) /* sums over all lanes do not overflow */

json_t *ring_reports_to_json(const char *node, const struct ring_report *reports, size_t count);
/* *node is the document's; the caller frees *out.  E_INVALID, E_JSON: what is wrong. */
int ring_reports_from_json(json_t *doc, const char **node, struct ring_report **out, size_t *count,
                           struct error *err);
json_t *ring_answers_to_json(const struct ring_answer *answers, size_t count);
/* Of so many lanes; E_JSON if there are others. */
int ring_answers_from_json(json_t *doc, struct ring_answer *out, size_t count, struct error *err);
