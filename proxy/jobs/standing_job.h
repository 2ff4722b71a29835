/* A standing job is one that the primary begins by itself, because the documents ask for it.  A
 * kind is one file, which fills in this struct, and one row of standing_jobs.c.
 *
 *   fence changes ─▶ stands for the kind's delay ─▶ next(): a job ─▶ finished ─▶ next(): a command
 *                                                     └ the fence moves: fits() ends it, and
 *                                                       another one follows
 *
 * Pure but for the ids, which are drawn at random. */
#pragma once

#include "cluster/command/command.h"
#include "cluster/documents/job.h"
#include "cluster/documents/state.h"

/* What a kind's settle time counts from anew whenever it changes. */
struct standing_fence {
    uint64_t numbers[3];
};

struct standing_now {
    uint64_t stood_ms; /* for how long the fence has been the same */
    int64_t wall_ms;
    /* The generation of the roster that a target wants to have resilvered; 0: none. */
    uint64_t (*unsettled)(void *ctx, const char *target);
    void *ctx;
};

enum standing_load {
    STANDING_COUNTS, /* one of those of which only so many run at once */
    STANDING_FREE,   /* runs whatever else does: others may wait for it */
    STANDING_BESIDE, /* may take weeks, and holds no other job up */
};

struct standing_job {
    const char *kind; /* a row of xaction/kinds.def */
    enum standing_load load;
    bool fixed; /* ends where a target joins or leaves */
    /* NULL: it waits for nothing to stand. */
    struct standing_fence (*fence)(const struct cluster_state *s);
    /* A job ready to be committed, by hand or because it is due.  E_JOB_STATE while there is one;
     * the kind's own errors.  NULL: it is not started by hand. */
    int (*make)(const struct cluster_state *s, int64_t wall_ms, struct job **out,
                struct error *err);
    /* Does it still fit the documents?  E_ABORTED, E_STALE_MAP.  NULL: always. */
    int (*fits)(const struct job *job, const struct cluster_state *s, struct error *err);
    /* What is next?  *cmd: a command to be committed, whose job, if it has one, is the caller's to
     * unref; or false. */
    bool (*next)(const struct cluster_state *s, const struct standing_now *now,
                 struct command *cmd);
};

/* --- for the kinds ---------------------------------------------------------------------------- */

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
