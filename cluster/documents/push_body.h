/* The body of a push, PUT /v1/cluster/state: a whole state, or the difference from a state that the
 * node holds.
 *
 *   whole        the state document (cluster/documents/state.h), and "build"
 *   difference   {"format": 1, "from": {"cluster": "c-9f…", "term": 1, "version": 7},
 *                "delta": {…}, "sum": "5f01…", "build": "0.1.0 bd686e2eb7c2"}, with the format of
 *                the state that it leads to, the delta of cluster/documents/delta.h, a sum of that
 *                state in hex, and the build of the primary.  The sum is XXH3-64 of the state's
 *                head and of the sums of its documents' texts
 *
 * The sum finds whatever is not as at the primary, wherever the node's state came from: a field
 * that this node's last release has dropped, say.  The node refuses the difference, and the
 * primary sends the whole.
 *
 * Two builds may write the same document as other texts, so that a node checks the sums of its own
 * build alone.  From another build it takes a difference only from a state that this build gave:
 * that has what that build knows, and nothing more.  A primary of an earlier release tells neither
 * format, sum nor build, and its differences are taken as they are.
 *
 * A node says in its reply that it reads differences: {"term", "version", "deltas": true}.  A
 * release that knows the whole only does not say it, so that the primary sends it no difference.
 *
 * Pure; any thread. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "cluster/documents/state.h"

/* The text of a body that brings `to` to a node; `from` NULL: whole.  For the caller to free. */
char *push_body_text(const struct cluster_state *from, const struct cluster_state *to);

/* Reads a body at a node that holds `now`.  *out is the state that it leads to; NULL if it is a
 * difference from another state than `now`: the node changes nothing, and replies with what it
 * holds.  E_WRONG_CLUSTER; E_INVALID for a difference that does not fit, E_UNSUPPORTED for a later
 * format, E_JSON for a malformed body. */
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
