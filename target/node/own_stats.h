/* The numbers that this target tells of itself with each keepalive.
 *
 * Latencies are of a window of some seconds: a keepalive comes more often than that, and repeats
 * those of the last window that is over.  One thread at a time. */
#pragma once

#include <stdint.h>

#include "cluster/members/node_stats.h"

struct own_stats;

struct own_stats *own_stats_new(void);
void own_stats_free(struct own_stats *s); /* NULL is fine */
void own_stats_read(struct own_stats *s, uint64_t now_ms, struct node_stats *out);
