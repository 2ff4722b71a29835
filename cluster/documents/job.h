/* A job in the jobs document: what the cluster has to remember of it.  Progress is not here: it
 * lives on the targets and is asked for.
 *
 *      ┌─────────┐ again
 *      ▼         │
 *   queued ─▶ running ─▶ committing ─▶ finished
 *      │         │
 *      └────┬────┘
 *           ▼
 *       stopping ─▶ failed | aborted
 *
 * `committing` is the point of no return: the decision is durable, targets that missed it are told
 * again until they have done it.  `stopping` undoes; it ends when every target that is reachable
 * has cleaned up (others clean up when they come back and find the job ended). A job of a kind that
 * begins again (xaction/kinds.def) goes back to `queued`, for its next attempt, when a target was
 * lost while it ran.  Where one stays away it may go on without it: a move from `queued` to
 * `queued`, which is another attempt.  From then on that target has no part in it, whatever becomes
 * of it: what it made goes, and nobody sees it. job_may_move() is the table of allowed moves;
 * job_move() asserts it. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

enum job_state {
    JOB_QUEUED,
    JOB_RUNNING,
    JOB_COMMITTING,
    JOB_FINISHED,
    JOB_STOPPING,
    JOB_FAILED,
    JOB_ABORTED,
};

/* The JSON values belong to their job alone.  Other threads read them, and copy what they want to
 * keep (json_deep_copy): jansson's reference counts are not made for several threads. */
struct job {
    char *id;   /* "srt-k3x9…" */
    char *kind; /* a row of xaction/kinds.def */
    enum job_state state;
    enum job_state stop_as; /* with JOB_STOPPING: JOB_FAILED or JOB_ABORTED */
    uint64_t attempt;       /* from 0; grows by one whenever it goes from running back to queued */
    char *description;
    json_t *spec; /* as the client gave it, checked; bucket ids resolved into `inputs` */
    json_t *plan; /* what the primary decided (kind's own).  The buckets that the job works
                             * on are in `input_bucket_id` and `output_bucket_id` */
    size_t participant_count;
    char **participants; /* target ids, in the order that the kind gives them meaning */
    size_t without_count;
    char **without; /* those of them that it goes on without; only ever grows */
    int64_t created_ms, started_ms, ended_ms; /* wall; 0 where not yet */
    char *error_code;                         /* with failed: name of error.def, and the sentence */
    char *error_message;
    json_t *report; /* after the end: totals, warnings, per-target detail; or NULL */
};

struct job *job_new(const char *id, const char *kind);
struct job *job_ref(const struct job *j);
void job_unref(const struct job *j);
struct job *job_copy(const struct job *j); /* a private one to change before it is published */
/* A job's document is no larger than this: the primary refuses a request that would make it so, and
 * nobody takes more from a peer or a disk. */
#define JOB_DOCUMENT_MAX (4 << 20)
json_t *job_to_json(const struct job *j);
size_t job_bytes(const struct job *j); /* of that JSON as text */
int job_from_json(json_t *doc, struct job **out, struct error *err);

const char *job_state_name(enum job_state s);
int job_state_from_name(const char *name, enum job_state *s, struct error *err);
bool job_equal(const struct job *a, const struct job *b);
bool job_may_move(enum job_state from, enum job_state to);
bool job_ended(enum job_state s);
/* It goes on without this participant. */
void job_leave_out(struct job *j, const char *id);
bool job_leaves_out(const struct job *j, const char *id);
/* Is the bucket one that the job's plan names? */
bool job_uses_bucket(const struct job *j, uint64_t bucket_id);
/* Does it make objects there? */
bool job_makes_in(const struct job *j, uint64_t bucket_id);
