/* The primary's driver of background jobs: keeps asking the targets, feeds their answers to the
 * controller (xaction/controller.h), commits the moves it decides and sends its orders.
 *
 *   tick ─▶ for every job that has not ended, and whose turn has come: step
 *   step ─▶ controller_step ─▶ a move:   commit it, then step again
 *                           └▶ no move:  send each target its order, or ask for its report
 *   answer ─▶ note it ─▶ step
 *
 * A target that has come to the end of a step says so (jobs_driver_moved) and is asked at once, so
 * that a job takes no longer than its work; ticks are for what is lost and for progress.
 *
 * At most one message to a (job, target) pair is under way, and at most one move of a job; what is
 * lost is sent again at the next tick.  Nothing here is durable: a primary that starts anew finds
 * the jobs in the document and goes on by asking.
 *
 * All functions belong to the control loop's thread, but for jobs_reports(). */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "cluster/command/command.h"
#include "cluster/documents/state.h"
#include "xaction/controller.h"

typedef void jobs_answer_fn(void *arg, const json_t *report, const struct error *err);

struct jobs_env {
    void *ctx;
    const struct cluster_state *(*state)(void *ctx); /* a reference, for the driver to drop */
    /* done() in the loop's thread, after return; err NULL on success. */
    void (*commit)(void *ctx, const struct command *cmd,
                   void (*done)(void *arg, const struct error *err), void *arg);
    /* Brings an order, or asks (CONTROLLER_NOTHING).  done() in the loop's thread, after return:
     * `report` as xactions_report() makes it, NULL where no answer came: then err says why. */
    void (*send)(void *ctx, const struct node *target, enum controller_order order,
                 const struct job *job, jobs_answer_fn *done, void *arg);
    /* Is the job's plan still good for this state?  0, or why not.  Pure. */
    int (*fits)(const struct job *job, const struct cluster_state *s, struct error *err);
    /* All targets have done their part: is that what was asked for? 0, or why the job fails.  NULL:
     * it is.  Pure. */
    int (*judge)(const struct job *job, const json_t *reports, struct error *err);
    /* How many of its targets can the job do without?  NULL: none can.  Pure. */
    size_t (*spares)(const struct job *job, const struct cluster_state *s);
    int64_t (*wall_ms)(void *ctx);
};

struct jobs_limits {
    uint64_t keep_ms;      /* ended jobs stay listed for so long, */
    uint64_t keep_max;     /* at most so many of them, */
    uint64_t keep_bytes;   /* whose documents are at most so long together */
    uint64_t attempts_max; /* of a job of a kind that begins again */
    uint64_t away_ticks;   /* for which one that can do without a target waits for it */
    uint64_t running_max;  /* jobs that run at once; others wait, queued, in order of creation */
};

struct jobs_driver;

struct jobs_driver *jobs_driver_new(const struct jobs_env *env, const struct jobs_limits *limits);
/* No callback of the env may come after this. */
void jobs_driver_free(struct jobs_driver *d);
/* At equal distances: what waits for so many ticks waits for so long. */
void jobs_driver_tick(struct jobs_driver *d);
/* Between those, where something is to be done at once: a job was asked for, or is to stop. */
void jobs_driver_wake(struct jobs_driver *d);
/* A target says that a job has moved on there: it is asked now, not at the next tick. */
void jobs_driver_moved(struct jobs_driver *d, const char *job_id, const char *node_id);
/* {"t1": last report, …}: a copy.  Empty for a job that has ended (its reports are in job->report)
 * or is unknown.  Any thread. */
json_t *jobs_driver_reports(struct jobs_driver *d, const char *job_id);
