/* The difference of two snapshots, as JSON: what a change adds to the metastore's log, so that the
 * log grows with what changes and not with what the cluster has.
 *
 *   {"term": 1, "version": 8, "term_version": 1, "next_bucket_id": 4, "primary": "p1",
 *    "bmd": {"version": 3, "count": 5, "put": [{bucket}], "drop": ["old"]}}
 *
 * A sub-document is there when its version differs; "put" has the items that are new or changed, in
 * the form of the state document, "drop" the names of those that are gone, "count" how many items
 * there are then.  That of the smap has "placed" and "earlier", too (cluster/documents/layout.h).
 * The document `access` has two parts, "users" and "roles", both with its version.
 *
 * For `to` reached from `from` by commands:  patch(from, delta(from, to)) equals to. */
#pragma once

#include <jansson.h>

#include "cluster/documents/state.h"

json_t *state_delta(const struct cluster_state *from, const struct cluster_state *to);
/* E_STALE_MAP where the delta does not lead forward; E_INVALID where it was made for another state;
 * E_JSON and the like for a malformed one.  O(count of the changed documents, and of the items). */
int state_patch(const struct cluster_state *from, json_t *delta, struct cluster_state **out,
                struct error *err);
