/* Which target reads a backend's list for a job of several targets: of those that are active the
 * one with the highest weight by (job, bucket, prefix).  All targets with one map choose the same.
 *
 * Pure. */
#pragma once

#include <stddef.h>

#include "cluster/documents/state.h"

struct list_of_job {
    const char *job;
    uint64_t bucket_id;
    const char *prefix;
};

/* The state's; `lost`: ids of those that did not answer.  NULL: there is nobody else. */
const struct node *list_owner(const struct cluster_state *s, const struct list_of_job *list,
                              const char *const *lost, size_t lost_count);
