/* How fast the cluster is: the last samples of what the targets tell of themselves.
 *
 *     stat_samples_hear(r, id, boot, &stats, now)     with each keepalive, at the primary
 *     stat_samples_show(r, &question, now)            the last samples, of all targets and of each
 *
 * Time is cut into intervals.  The first keepalive in a new interval ends the sample of the one
 * before: of counters the difference since the first keepalive of that interval, of other numbers
 * the last value.  A target that was started anew, or silent for an interval, has no sample there.
 *
 * In memory, and bounded: NODE_STATS numbers for each of `keep` intervals and each target.  A
 * target that is silent for all of them is forgotten.  The clock is the caller's.  Any thread. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/members/node_stats.h"
#include "common/cleanup.h"

struct stat_samples;

struct stat_samples_config {
    uint64_t interval_ms; /* of a sample */
    uint64_t late_ms;     /* a sample is shown so long after its interval, when all have reported */
    size_t keep;          /* samples of a target */
};

struct stat_samples *stat_samples_new(const struct stat_samples_config *config);
void stat_samples_free(struct stat_samples *r); /* NULL is fine */
DEFINE_CLEANUP(struct stat_samples, stat_samples_free);

/* `boot`: of this run of the target. */
void stat_samples_hear(struct stat_samples *r, const char *id, const char *boot,
                       const struct node_stats *stats, uint64_t now_ms);

struct stat_samples_question {
    size_t samples; /* the last ones; no more than are kept */
    bool nodes;     /* each target, too */
    int64_t wall_ms;
};
/*     {"interval_ms", "end_ms": wall clock of the end of the last sample, "samples",
 *      "cluster": {"reads": [12, null, …], …}, "nodes": {"t1": {…}}}
 *
 * The oldest first; null: no target has told of it. */
json_t *stat_samples_show(struct stat_samples *r, const struct stat_samples_question *q,
                          uint64_t now_ms);
