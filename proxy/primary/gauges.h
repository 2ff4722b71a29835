/* What a proxy's /metrics says of the cluster. */
#pragma once

struct cluster_state;
struct proxy;

void gauges_of_state(const struct cluster_state *s); /* after each change; any thread */
void gauges_update(struct proxy *p);                 /* what is asked for when somebody looks */
