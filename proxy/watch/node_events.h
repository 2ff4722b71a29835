/* What has happened to a node between two of its keepalives.  Pure. */
#pragma once

#include <stdint.h>

struct event_log;
struct keepalive;

/* `before` and `now` are of the node `id`. */
void node_events(const char *id, const struct keepalive *before, const struct keepalive *now,
                 int64_t wall_ms, struct event_log *log);
