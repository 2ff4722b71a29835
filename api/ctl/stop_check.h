/* May a node be stopped for a while without a read or write that fails?  From the cluster's
 * overview (GET /v1/cluster) and its buckets (GET /v1/buckets): pure.
 *
 *   a proxy    another proxy is active
 *   a target   every other target is active and has what it missed, nothing is being moved, and
 *              every bucket is protected: other targets stand in for its objects
 *
 * A target that owns nothing (in maintenance, its objects moved off) and one that does not answer
 * anyway may be stopped. */
#pragma once

#include <jansson.h>

#include "common/error.h"

/* *reasons: texts that say why not; empty: it may be stopped.  E_NODE_NOT_FOUND: no such node. */
int stop_check(json_t *overview, json_t *buckets, const char *node, json_t **reasons,
               struct error *err);
