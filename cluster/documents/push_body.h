/* The body of a push, PUT /v1/cluster/state: a whole state, or the difference from a state that the
 * node holds.
 *
 *   whole        the state document (cluster/documents/state.h)
 *   difference   {"format": 1, "from": {"cluster": "c-9f…", "term": 1, "version": 7},
 *                "delta": {…}}, with the format of the state that it leads to, and the delta of
 *                cluster/documents/delta.h
 *
 * A node takes differences while it holds a state that a primary gave it in this run, and says so
 * in its reply: {"term", "version", "deltas": true}.  A state that it read from its disk, or got
 * from another node, may lack fields that an earlier release did not know, and a difference would
 * not bring them.
 *
 * Pure; any thread. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "cluster/documents/state.h"

/* The text of a body that brings `to` to a node; `from` NULL: whole.  For the caller to free. */
char *push_body_text(const struct cluster_state *from, const struct cluster_state *to);

/* Reads a body at a node that holds `now`; NULL: that takes no difference.  *out is the state that
 * it leads to; NULL if it is a difference from another state than `now`: the node changes nothing,
 * replies with what it holds, and the primary sends the whole.  E_WRONG_CLUSTER; E_INVALID for a
 * difference that does not fit, E_UNSUPPORTED for a later format, E_JSON for a malformed body. */
int push_body_read(const struct cluster_state *now, const char *text, size_t len,
                   struct cluster_state **out, struct error *err);

/* What a node replies to a push. */
struct push_reply {
    uint64_t term;
    uint64_t version;
    bool deltas; /* it reads differences */
};

json_t *push_reply_to_json(const struct push_reply *r);
int push_reply_from_json(json_t *doc, struct push_reply *r, struct error *err);
