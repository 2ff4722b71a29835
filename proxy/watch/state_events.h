/* What has happened between two states of the cluster.  Pure.
 *
 * Every proxy hears of every state, so that a proxy that becomes the primary already has the events
 * of its predecessor.  A proxy that hears of several changes at once sees their sum alone: a bucket
 * that was created and destroyed in between is no event. */
#pragma once

#include <stdint.h>

struct cluster_state;
struct event_log;

/* `wall_ms`: the time of these events. */
void state_events(const struct cluster_state *before, const struct cluster_state *now,
                  int64_t wall_ms, struct event_log *log);
