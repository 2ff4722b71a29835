/* The overview of the cluster: what GET /v1/cluster shows, and what its health is judged by
 * (common/cluster_health.h). */
#pragma once

#include <stdbool.h>

#include <jansson.h>

struct cluster_state;
struct proxy;

/* Any thread.  Only the primary's own has what nodes report.  `primary_answers`: it is the
 * primary's, or the primary has answered. */
json_t *cluster_view(struct proxy *p, const struct cluster_state *s, bool primary_answers);
