/* What the targets have of the buckets with a quota, as the primary heard it with their keepalives
 * since it began.  Pure; its owner has the lock.
 *
 * What a target said last stays while the target is unreachable, and until a new run of it has
 * counted.  It goes with the target's entry in the map. */
#pragma once

#include <jansson.h>

#include "cluster/documents/state.h"
#include "cluster/props/quota.h"

struct quota_sums;

struct quota_sums *quota_sums_new(void);
void quota_sums_free(struct quota_sums *q); /* NULL is fine */

/* The field `quotas` of a keepalive (target/node/quotas.h); NULL: the node has nothing to say, and
 * counts as heard.  After an error the rows before the wrong one count. */
int quota_sums_take(struct quota_sums *q, const struct cluster_state *s, const char *node,
                    json_t *list, struct error *err);
/* The field of the reply to this node: the next QUOTAS_AT_ONCE buckets.  NULL while an active
 * target was not heard: the sums would be too small. */
json_t *quota_sums_reply(struct quota_sums *q, const struct cluster_state *s, const char *node);
/* What all targets have of the bucket, as far as they were heard. */
struct quota_amount quota_sums_of(const struct quota_sums *q, uint64_t bucket_id);
