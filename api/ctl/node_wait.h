/* The wait of node maintenance and node decommission. */
#pragma once

#include <stdint.h>

struct ctl;

/* Until the node has this state and nothing is being moved any more; state NULL: until it has left
 * the cluster and nothing is being moved any more.  Returns an exit code; EXIT_UNREACHABLE: the
 * time ran out (0: no limit). */
int node_wait_moved(struct ctl *ctl, const char *id, const char *state, uint64_t timeout_ms);
