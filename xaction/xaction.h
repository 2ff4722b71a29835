/* Background jobs on a target: one life cycle for every kind (states.h).
 *
 * The primary tells each participant to prepare (so that everyone can take streams from peers),
 * then to run; when all are prepared it makes the decision durable in the jobs document and tells
 * them to commit; when any has failed, or a user aborts, it tells them to stop, which undoes. A
 * prepare with a later attempt than the one that is known leads from everywhere before `committing`
 * back to `preparing`, after the step at hand. Every order is idempotent and each answer is the
 * present report, so that a lost message is simply sent again.
 *
 * A kind fills in struct xaction_ops.  open(), status(), stop() and free() are quick; the others do
 * the work, in a thread of the job's own, one after the other.  stop() may come from any thread
 * while run() is running and must only ask it to end.
 *
 * commit() and undo() are called again after an error, at growing distances, until they succeed or
 * the node stops: the state stays `committing` or `stopping`, and the report has the last error.
 *
 * The registry owns the jobs of this node.  Lock: one mutex per registry; open(), stop() and
 * status() run under it, and take no lock under which somebody calls the registry. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "cluster/documents/job.h"
#include "common/error.h"
#include "xaction/states.h"

struct xaction_ops {
    const char *kind; /* a row of kinds.def */
    const char *like; /* NULL, or the kind that it is to who holds it: its state is the same */
    const void *work; /* for open(), where several kinds share it */
    /* Makes the job's own state out of its document, and touches nothing else.  After a restart of
     * the node it is followed not by prepare() but by commit() or undo(), which then work from what
     * is on the disks. */
    int (*open)(const struct xaction_ops *kind, void *host, const struct job *job, void **self,
                struct error *err);
    /* Before prepare() for a further attempt, with the document as it is now: forgets what the one
     * before had to do with peers, and keeps what it has made.  NULL: nothing to forget. */
    void (*again)(void *self, const struct job *job);
    /* Whatever must be there before peers may send.  After an error undo() follows. */
    int (*prepare)(void *self, struct error *err);
    /* The work, to the point where it only has to be made visible. */
    int (*run)(void *self, struct error *err);
    void (*stop)(void *self);
    /* The same for a further attempt: what the next one need not do again may be finished.  NULL:
     * as stop(). */
    void (*give_way)(void *self);
    /* Makes it visible. */
    int (*commit)(void *self, struct error *err);
    /* Removes everything that prepare() and run() made; as far as it can, also when it fails. */
    int (*undo)(void *self, struct error *err);
    /* From ready on; may be NULL in between. */
    json_t *(*status)(void *self);
    /* The attempt that `self` is at, by its own state.  NULL: the kind has one attempt. */
    uint64_t (*attempt)(const void *self);
    /* Nobody holds the job any more (see xactions_hold). */
    void (*free)(void *self);
};

/* A step of a kind that has nothing to prepare, to make visible or to undo. */
int xaction_nothing(void *self, struct error *err);

struct xactions; /* the registry */

/* `kinds` is a NULL-terminated list; `host` is handed to open() and moved().  moved(), which may be
 * NULL, is told when a job has come to a state in which it waits for an order or has ended; it is
 * quick, runs under the registry's lock, and is not called any more after xactions_close(). */
struct xactions *xactions_new(const struct xaction_ops *const *kinds, void *host,
                              void (*moved)(void *host, const char *job_id));
/* From now on no job begins and none is held; what runs is told to stop.  Does not wait. */
void xactions_close(struct xactions *x);
/* Stops what runs, without undoing it (the job's files are dealt with when the node starts again),
 * and joins all threads. */
void xactions_free(struct xactions *x);

/* Carries out an order as far as it can be at once; the rest goes on in the job's thread.  An order
 * that the state does not allow (run before prepare, commit of a failed job) is E_JOB_STATE.
 * A commit or stop of a job that this node does not know (it has restarted) opens it first; a
 * job once stopped stays known as such, so that a late prepare is refused. */
int xactions_order(struct xactions *x, enum xaction_order order, const struct job *job,
                   struct error *err);
/* {"state", "attempt" (of a later one than the first), "error": {"code", "message"} or absent,
 * "status": {…}}; also for unknown jobs. */
json_t *xactions_report(struct xactions *x, const char *job_id);
/* The kind's own state of a job that is ready, running or prepared, held until xactions_release();
 * NULL where there is none. */
void *xactions_hold(struct xactions *x, const char *job_id, const char *kind);
void xactions_release(struct xactions *x, const char *job_id);
/* As xactions_hold(), and only if it is at this attempt. */
bool xactions_hold_attempt(struct xactions *x, const char *job_id, const char *kind,
                           uint64_t attempt);
/* After the documents have come from the primary: what has ended there, or is no longer there, is
 * ordered to be committed or stopped, and dropped once that is done; so is what goes on without
 * this node.  Jobs begin here only when they are in the documents. */
struct jobs;
void xactions_settle(struct xactions *x, const struct jobs *jobs, const char *node_id);
