/* What kinds of standing jobs (job_kind.h) have in common. */
#pragma once

#include "proxy/jobs/job_kind.h"

bool standing_is(const struct job *job, const char *kind);
uint64_t standing_number(const struct job *job, const char *field); /* of its spec; 0: none */
/* Of this kind, not ended; NULL: none. */
const struct job *standing_unfinished(const struct cluster_state *s, const char *kind);
/* E_JOB_STATE while there is one. */
int standing_check_none(const struct cluster_state *s, const char *kind, struct error *err);
/* May one follow `last`, the last one for the same fence?  NULL: yes.  Not after one that finished
 * or was aborted by hand; after a failed one when `retry_ms` have passed. */
bool standing_may_follow(const struct job *last, int64_t retry_ms, int64_t wall_ms);
/* A queued job of this kind without participants.  Takes `spec`. */
struct job *standing_new(const char *kind, int64_t wall_ms, json_t *spec);
/* Those targets of the map that the kind takes. */
void standing_take(const struct cluster_state *s, bool (*takes)(const struct node *n),
                   struct job *job);
/* E_STALE_MAP where one of the job's targets has left the map; `then` says what follows. */
int standing_check_targets(const struct job *job, const struct cluster_state *s, const char *then,
                           struct error *err);
/* The command that commits a new job. */
bool standing_create(struct job *job, int64_t wall_ms, struct command *cmd);
