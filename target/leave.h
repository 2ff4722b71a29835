/* A target that is told to stop, and that others stand in for:
 *
 *   lease given up ─▶ the primary told ─▶ all proxies know ─▶ stop_linger ─▶ requests end
 *                     (POST /v1/cluster/stop)
 *
 * Until the end it serves: what it owns alone by itself, all else by a redirect to the owner that
 * acts in its place by now.  So no client that follows an earlier redirect finds the door closed.
 * Nobody waits where nobody stands in (no other active target, no bucket with copies), nor where
 * the primary does not answer. */
#pragma once

#include <stdint.h>

struct target;
struct target_params;

/* In the main thread, before target_free().  Another signal ends it. */
void target_leave(struct target *t, int signals_fd);
/* The longest that it takes.  One proxy may not answer; the time for more of them is not in it. */
uint64_t target_leave_max_ms(const struct target_params *params);
