/* May a node be stopped for a while without a read or write that fails?  From the cluster's
 * overview (GET /v1/cluster) and its buckets (GET /v1/buckets): pure.
 *
 *   a proxy    another proxy is active, and the primary has heard from it lately; instead of the
 *              primary one that may be elected
 *   a target   every other target is active and has what it missed, nothing is being moved, and
 *              every bucket is protected: other targets stand in for its objects.  The overview
 *              counts the buckets that the caller may not list, too
 *
 * A target that owns nothing (in maintenance, its objects moved off) and one that does not answer
 * anyway may be stopped. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "common/error.h"

/* *reasons: texts that say why not; empty: it may be stopped.  `buckets` NULL: the reasons
 * count the buckets that are not protected, and name none.  E_NODE_NOT_FOUND: no such node. */
int stop_check(json_t *overview, json_t *buckets, const char *node, json_t **reasons,
               struct error *err);

/* The node must not be stopped, and waiting changes nothing about it: every reason is a bucket that
 * keeps one copy of each object. */
bool stop_waits_in_vain(json_t *overview, json_t *buckets, const char *node);

/* Has the node the state that an action gave it, and is nothing being moved any more?  `state`
 * NULL: has it left the cluster?  *done says it; `seen` (false at first) is kept from look to look.
 *
 *   E_ABORTED       somebody has undone the action, or the node left where it should stay
 *   E_UNSUPPORTED   the overview does not say whether objects are being moved */
int stop_moved(json_t *overview, const char *node, const char *state, bool *seen, bool *done,
               struct error *err);
